// The GETs that the console's page may have passed to the cluster, with the rights of the
// kubeconfig. Everything else is refused, whatever those rights are: Secrets, above all. Pure.
#pragma once

#include "base/result.h"
#include "gateway/request_target.h"

#include <string>
#include <string_view>

namespace hangar::console {

// The path of the console under which the cluster's own paths are.
inline constexpr std::string_view kClusterPrefix = "/api/cluster";

struct ClusterGet {
  std::string target;  // Path and query for the API server.
  // Set if it is about instances of an Airway: the name that this Airway must have
  // ("backends.examples.com"). It may be passed on only if there is such an Airway.
  std::string airway;
};

// `target`: without kClusterPrefix. A list is limited to limits::kConsolePageItemsMax objects; of
// its parameters only `limit`, `continue` and, for Events, `fieldSelector=involvedObject.uid=UID`
// are allowed. Denied for what is not in the list.
[[nodiscard]] Result<ClusterGet> cluster_get(const gateway::RequestTarget& target);

}  // namespace hangar::console
