// The documents in which the API server lists what it serves: aggregated discovery
// (apidiscovery.k8s.io/v2) and, for servers without it, one document per group and version.
#pragma once

#include "base/result.h"
#include "json/value.h"
#include "kube/object.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::kube::internal {

struct ServedVersion {
  std::string version;
  std::vector<Resource> resources;
};
// The preferred version first.
using ServedGroup = std::vector<ServedVersion>;

inline constexpr std::string_view kAggregatedDiscovery =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

// By group. Groups with a version that the server itself could not fetch (stale) are left out and
// must be requested one by one. InvalidInput when the document is not an APIGroupDiscoveryList, as
// from a server without aggregated discovery.
[[nodiscard]] Result<std::map<std::string, ServedGroup>> parse_aggregated(
    const json::Value& document);

// The versions in an APIGroup (of /apis/<group>) or APIVersions (of /api), the preferred one first.
[[nodiscard]] std::vector<std::string> parse_versions(const json::Value& document);

// The resources in an APIResourceList (of /apis/<group>/<version>).
[[nodiscard]] std::vector<Resource> parse_resources(const json::Value& document,
                                                    std::string_view group,
                                                    std::string_view version);

}  // namespace hangar::kube::internal
