// Carries the budgets of TenantPolicies to where they are kept: memory, watches, fetches.
#pragma once

#include "budget/accounts.h"
#include "gateway/gateway.h"
#include "modules/fetcher.h"
#include "tenants/policies.h"

namespace hangar::host {

// What namespaces may hold of guests' memory by the policies that are known now.
[[nodiscard]] budget::TenantLimits memory_limits_of(const tenants::Policies& policies);

// From now on, and whenever policies change. All of them live for as long as any is used.
void apply_tenant_bounds(tenants::Policies& policies, budget::Accounts& memory,
                         gateway::Gateway& gateway, modules::Fetcher& fetcher);

}  // namespace hangar::host
