// The list of GETs that the console forwards to the cluster for its page, with the rights of the
// kubeconfig. All other requests, above all for Secrets, are refused regardless of these
// rights. Pure.
#pragma once

#include "base/result.h"
#include "gateway/request_target.h"

#include <string>
#include <string_view>

namespace hangar::console {

// The path prefix of the console for paths of the cluster.
inline constexpr std::string_view kClusterPrefix = "/api/cluster";

struct ClusterGet {
  std::string target;  // Path and query for the API server.
  // Set if the request is about instances of an Airway: the name of that Airway
  // ("backends.examples.com"). Forward the request only if this Airway exists.
  std::string airway;
};

// `target`: without kClusterPrefix. A list is limited to limits::kConsolePageItemsMax objects; of
// its parameters only `limit`, `continue` and, for Events, `fieldSelector=involvedObject.uid=UID`
// are allowed. Denied for all paths that are not in the list.
[[nodiscard]] Result<ClusterGet> cluster_get(const gateway::RequestTarget& target);

}  // namespace hangar::console
