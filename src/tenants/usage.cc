#include "tenants/usage.h"

#include "json/value.h"
#include "kube/object.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

namespace hangar::tenants {

namespace {

// Integers of the API server are signed.
std::int64_t integer(std::uint64_t value) {
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return static_cast<std::int64_t>(std::min(value, kMax));
}

json::Object object_of(const Use& use) {
  json::Object object{{"used", integer(use.used)}};
  if (use.limit) object["limit"] = integer(*use.limit);
  if (!use.policy.empty()) object["policy"] = use.policy;
  return object;
}

}  // namespace

kube::Resource tenant_usage_resource() {
  return {.group = "hangar.dev",
          .version = "v1alpha1",
          .plural = "tenantusages",
          .kind = "TenantUsage",
          .namespaced = true};
}

json::Value usage_document(const std::string& namespace_name, const Usage& usage) {
  json::Array policies;
  for (const std::string& policy : usage.policies)
    policies.emplace_back(json::String(policy));
  json::Object operators = object_of(usage.operators);
  operators["awake"] = integer(usage.operators_awake);
  operators["asleep"] = integer(usage.operators_asleep);
  json::Object upstream_requests = object_of(usage.upstream_requests);
  upstream_requests["waiting"] = integer(usage.upstream_requests_waiting);
  json::Object fetches = object_of(usage.fetches);
  fetches["waiting"] = integer(usage.fetches_waiting);
  return json::Object{
      {"apiVersion", "hangar.dev/v1alpha1"},
      {"kind", "TenantUsage"},
      {"metadata", json::Object{{"name", json::String(kUsageName)}, {"namespace", namespace_name}}},
      {"status", json::Object{{"policies", std::move(policies)},
                              {"guestMemory", object_of(usage.guest_memory)},
                              {"guestDisk", object_of(usage.guest_disk)},
                              {"moduleDisk", object_of(usage.module_disk)},
                              {"cpu", object_of(usage.cpu)},
                              {"output", object_of(usage.output)},
                              {"operators", std::move(operators)},
                              {"workflows", json::Object{{"used", integer(usage.workflows)}}},
                              {"flights", json::Object{{"used", integer(usage.flights)}}},
                              {"instances", json::Object{{"used", integer(usage.instances)}}},
                              {"feeds", object_of(usage.feeds)},
                              {"feedMemory", object_of(usage.feed_memory)},
                              {"answerMemory", object_of(usage.answer_memory)},
                              {"ownWatches", object_of(usage.own_watches)},
                              {"upstreamRequests", std::move(upstream_requests)},
                              {"fetches", std::move(fetches)}}}};
}

}  // namespace hangar::tenants
