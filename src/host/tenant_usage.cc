#include "host/tenant_usage.h"

#include "airways/air_traffic_controller.h"
#include "budget/accounts.h"
#include "budget/cache_charges.h"
#include "budget/consumer.h"
#include "budget/container_memory.h"
#include "gateway/gateway.h"
#include "gateway/tenant_bounds.h"
#include "io/loop.h"
#include "modules/fetcher.h"
#include "operators/operator_controller.h"
#include "output/limits.h"
#include "output/namespace_allowances.h"
#include "tenants/policies.h"
#include "tenants/rules.h"
#include "tenants/usage.h"
#include "workflows/workflow_controller.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace hangar::host {

namespace {

tenants::Use use_of(std::uint64_t used, std::optional<std::uint64_t> of_host,
                    const std::optional<tenants::Bound>& bound) {
  if (bound && (!of_host || bound->value < *of_host)) {
    return {.used = used, .limit = bound->value, .policy = bound->policy};
  }
  return {.used = used, .limit = of_host};
}

tenants::Use use_of(const budget::Accounts& accounts, const budget::Tenant& tenant,
                    const std::optional<tenants::Bound>& bound) {
  const budget::Accounts::Limits& limits = accounts.limits();
  return use_of(accounts.held_bytes(tenant),
                std::min(limits.host_bytes_max, limits.tenant_bytes_max), bound);
}

void add_bounds(const UsageSources& sources, const std::string& namespace_name,
                tenants::Usage& usage) {
  const budget::Tenant tenant = budget::Tenant::of_namespace(namespace_name);
  const std::shared_ptr<const tenants::Rules> rules = sources.policies.rules_of(namespace_name);
  for (const auto& policy : rules->policies())
    usage.policies.push_back(policy->name);

  usage.guest_memory = use_of(sources.memory, tenant, rules->guest_memory_bytes());
  usage.guest_disk = use_of(sources.disk, tenant, rules->guest_disk_bytes());
  usage.module_disk =
      use_of(sources.module_disk.charged_bytes(tenant),
             sources.module_disk.options().namespace_bytes_max, rules->module_disk_bytes());
  usage.cpu =
      use_of(sources.rates.use_of(tenant, io::Loop::now()).millicores, {}, rules->cpu_millicores());
  usage.output = use_of(sources.output.bytes_per_second(namespace_name, io::Loop::now()),
                        limits::kNamespaceOutputBytesPerSecond, rules->output_bytes_per_second());
  usage.operators = use_of(usage.operators.used, {}, rules->operators());
  const gateway::Gateway::Use gateway = sources.gateway.use_of(namespace_name);
  usage.feeds = use_of(gateway.feeds, gateway::kFeedsPerTenantMax, rules->feeds());
  usage.feed_memory =
      use_of(gateway.feed_bytes, budget::cache_memory_limits().tenant_bytes_max, {});
  usage.own_watches =
      use_of(gateway.own_watches, gateway::kOwnWatchesPerTenantMax, rules->own_watches());
  usage.upstream_requests =
      use_of(gateway.upstream_requests, gateway::kUpstreamRequestsPerTenantMax,
             rules->upstream_requests());
  usage.upstream_requests_waiting = gateway.upstream_requests_waiting;
  if (sources.operators != nullptr) {
    usage.answer_memory = use_of(sources.operators->fleet().answers(), tenant, {});
  }
  const modules::Fetcher::Use fetches = sources.fetcher.use_of(tenant);
  usage.fetches = use_of(fetches.under_way, modules::kFetchesPerTenantMax, rules->fetches());
  usage.fetches_waiting = fetches.waiting;
}

}  // namespace

std::optional<std::map<std::string, tenants::Usage>> usage_now(const UsageSources& sources) {
  const bool is_known = sources.policies.is_settled() &&
                        (sources.operators == nullptr || sources.operators->is_synced()) &&
                        (sources.workflows == nullptr || sources.workflows->is_synced()) &&
                        (sources.airways == nullptr || sources.airways->is_synced());
  if (!is_known) return std::nullopt;
  std::map<std::string, tenants::Usage> usages;
  if (sources.operators != nullptr) {
    for (const auto& [namespace_name, count] : sources.operators->counts()) {
      tenants::Usage& usage = usages[namespace_name];
      usage.operators.used = count.all;
      usage.operators_awake = count.awake;
      usage.operators_asleep = count.asleep;
    }
  }
  if (sources.workflows != nullptr) {
    for (const auto& [namespace_name, count] : sources.workflows->counts())
      usages[namespace_name].workflows = count;
  }
  if (sources.airways != nullptr) {
    for (const auto& [namespace_name, count] : sources.airways->counts()) {
      tenants::Usage& usage = usages[namespace_name];
      usage.flights = count.flights;
      usage.instances = count.instances;
    }
  }
  for (auto& [namespace_name, usage] : usages)
    add_bounds(sources, namespace_name, usage);
  return usages;
}

}  // namespace hangar::host
