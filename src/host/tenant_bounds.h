// Carries the budgets of TenantPolicies to where they are kept: memory, disk, watches, fetches.
#pragma once

#include "budget/accounts.h"
#include "gateway/gateway.h"
#include "modules/fetcher.h"
#include "tenants/policies.h"

namespace hangar::host {

struct TenantBounded {
  budget::Accounts& memory;  // Of guests.
  budget::Accounts& disk;    // Of those that sleep.
  gateway::Gateway& gateway;
  modules::Fetcher& fetcher;
};

// From now on, and whenever policies change. All of them live for as long as any is used.
void apply_tenant_bounds(tenants::Policies& policies, const TenantBounded& bounded);

}  // namespace hangar::host
