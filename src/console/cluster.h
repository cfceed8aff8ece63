// Forwards the page's requests to the cluster, as the kubeconfig's user.
#pragma once

#include "base/result.h"
#include "gateway/request_target.h"
#include "io/task.h"
#include "kube/client.h"

#include <stop_token>
#include <string>

namespace hangar::console {

// `target`: the cluster's own path and query (cluster_paths.h). Returns the object or list as JSON,
// without the fields that the page does not show. Denied for a path that is not in the list or an
// Airway that does not exist; LimitExceeded beyond limits::kConsoleAnswerBytesMax; Unavailable
// after limits::kConsoleClusterMax; otherwise the API server's error.
[[nodiscard]] io::Task<Result<std::string>> ask_cluster(const kube::Client& client,
                                                        gateway::RequestTarget target,
                                                        std::stop_token stop);

}  // namespace hangar::console
