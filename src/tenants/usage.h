// The usage and the limits of a namespace, which its TenantUsage shows. The schema is
// in deploy/crds/tenantusages.hangar.dev.yaml.
#pragma once

#include "json/value.h"
#include "kube/object.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::tenants {

// The name of the only TenantUsage in a namespace.
inline constexpr std::string_view kUsageName = "hangar";

[[nodiscard]] kube::Resource tenant_usage_resource();

struct Use {
  std::uint64_t used = 0;
  std::optional<std::uint64_t> limit = {};
  std::string policy = {};  // The policy that sets the limit; empty: the host sets it.
};

struct Usage {
  std::vector<std::string> policies = {};
  Use guest_memory = {};  // Bytes.
  Use guest_disk = {};    // Bytes.
  Use module_disk = {};   // Bytes.
  Use cpu = {};           // Thousandths of a core.
  Use output = {};        // Bytes a second.
  Use operators = {};
  std::uint64_t operators_awake = 0;
  std::uint64_t operators_asleep = 0;
  std::uint64_t workflows = 0;
  std::uint64_t flights = 0;
  std::uint64_t instances = 0;  // Instances of Airways.
  Use feeds = {};
  Use feed_memory = {};    // Bytes.
  Use answer_memory = {};  // Bytes.
  Use own_watches = {};
  Use upstream_requests = {};
  std::uint64_t upstream_requests_waiting = 0;
  Use fetches = {};
  std::uint64_t fetches_waiting = 0;
};

// For server-side apply: the whole object.
[[nodiscard]] json::Value usage_document(const std::string& namespace_name, const Usage& usage);

}  // namespace hangar::tenants
