// Applies the limits of TenantPolicies to the parts that enforce them: memory, disk, processor
// time, watches, fetches, output.
#pragma once

#include "budget/accounts.h"
#include "budget/cache_charges.h"
#include "budget/equal_rates.h"
#include "budget/rates.h"
#include "gateway/gateway.h"
#include "modules/fetcher.h"
#include "output/namespace_allowances.h"
#include "tenants/policies.h"

namespace hangar::host {

struct TenantBounded {
  budget::Accounts& memory;  // Memory of guests.
  budget::Accounts& disk;    // Disk space of sleeping guests.
  budget::CacheCharges& module_disk;
  budget::Rates& rates;  // Processor time.
  const budget::EqualRates& equal_rates;
  gateway::Gateway& gateway;
  modules::Fetcher& fetcher;
  output::NamespaceAllowances& output;
};

// Applies the limits now and whenever policies change. All of these objects must live as long as
// any of them is used.
void apply_tenant_bounds(tenants::Policies& policies, const TenantBounded& bounded);

}  // namespace hangar::host
