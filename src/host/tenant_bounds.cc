#include "host/tenant_bounds.h"

#include "budget/accounts.h"
#include "budget/cache_charges.h"
#include "budget/consumer.h"
#include "budget/equal_rates.h"
#include "budget/rates.h"
#include "gateway/gateway.h"
#include "gateway/tenant_bounds.h"
#include "modules/fetcher.h"
#include "output/namespace_allowances.h"
#include "tenants/policies.h"
#include "tenants/rules.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace hangar::host {

namespace {

std::string who(const tenants::Bound& bound) {
  return "TenantPolicy " + bound.policy;
}

using BytesOf = std::optional<tenants::Bound> (tenants::Rules::*)() const;

budget::TenantLimits::Limit limit_of(const tenants::Rules& rules, BytesOf bytes_of) {
  const std::optional<tenants::Bound> bound = (rules.*bytes_of)();
  if (!bound) return {};
  return {.bytes_max = bound->value, .set_by = who(*bound)};
}

// The limits of namespaces from the currently known policies.
budget::TenantLimits limits_of(const tenants::Policies& policies, BytesOf bytes_of) {
  budget::TenantLimits limits{.others = limit_of(policies.rules_of_unknown(), bytes_of)};
  // All policies apply to an unknown namespace. If they set no limit, no namespace has one.
  if (limits.others == budget::TenantLimits::Limit()) return {};
  for (std::string& name : policies.known_namespaces()) {
    budget::TenantLimits::Limit limit = limit_of(*policies.rules_of(name), bytes_of);
    limits.namespaces.emplace(std::move(name), std::move(limit));
  }
  return limits;
}

gateway::TenantBounds gateway_bounds(const tenants::Rules& rules) {
  gateway::TenantBounds bounds;
  if (const auto feeds = rules.feeds()) bounds.feeds = feeds->value;
  if (const auto watches = rules.own_watches()) {
    bounds.own_watches = watches->value;
    bounds.own_watches_set_by = who(*watches);
  }
  if (const auto requests = rules.upstream_requests()) bounds.upstream_requests = requests->value;
  return bounds;
}

}  // namespace

void apply_tenant_bounds(tenants::Policies& policies, const TenantBounded& bounded) {
  policies.listen([&policies, &memory = bounded.memory, &disk = bounded.disk,
                   &module_disk = bounded.module_disk](const std::string& /*namespace_name*/) {
    memory.limit_tenants(limits_of(policies, &tenants::Rules::guest_memory_bytes));
    disk.limit_tenants(limits_of(policies, &tenants::Rules::guest_disk_bytes));
    module_disk.limit_tenants(limits_of(policies, &tenants::Rules::module_disk_bytes));
  });
  bounded.rates.limit_tenants(
      [&policies, &equal = bounded.equal_rates](
          const budget::Tenant& tenant) -> std::optional<budget::RateLimit> {
        if (tenant.namespace_name().empty()) return std::nullopt;
        const std::optional<budget::RateLimit> part = equal.limit_of(tenant);
        const std::optional<tenants::Bound> most =
            policies.rules_of(tenant.namespace_name())->cpu_millicores();
        if (!most || (part && part->millicores < most->value)) return part;
        return budget::RateLimit{.millicores = most->value, .set_by = who(*most)};
      });
  bounded.gateway.limit_tenants([&policies](const std::string& tenant) {
    return gateway_bounds(*policies.rules_of(tenant));
  });
  bounded.output.limit_namespaces(
      [&policies](const std::string& name) -> std::optional<output::NamespaceAllowances::Bound> {
        const std::optional<tenants::Bound> most =
            policies.rules_of(name)->output_bytes_per_second();
        if (!most) return std::nullopt;
        return output::NamespaceAllowances::Bound{.bytes_per_second = most->value,
                                                  .set_by = who(*most)};
      });
  bounded.fetcher.limit_tenants([&policies](const budget::Tenant& tenant) {
    // Modules of cluster-scoped objects belong to administrators.
    if (tenant.namespace_name().empty()) return modules::kFetchesPerTenantMax;
    const std::optional<tenants::Bound> most =
        policies.rules_of(tenant.namespace_name())->fetches();
    return most ? static_cast<std::size_t>(most->value) : modules::kFetchesPerTenantMax;
  });
}

}  // namespace hangar::host
