// `hangar logs NAME` where the host is not on this machine: what the operator printed, out of the
// log of the pod that runs it.
//
// The API server is asked as the user of the kubeconfig: who may read the Operator and the log of
// the host's pod may read this, and nothing of the host listens for it.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "host/config.h"
#include "host/operator_logs.h"

#include <functional>
#include <string>
#include <string_view>

namespace hangar::host {

// Where kubectl would look: the kubeconfig's, else "default".
[[nodiscard]] Result<std::string> kubeconfig_namespace(const Config& config);

// As print_operator_logs, of an Operator that exists: one that has printed nothing is no error.
// NotFound when there is no such Operator, no host says in which pod it runs it (--pod), or its pod
// is gone; Denied.
[[nodiscard]] Result<> print_pod_logs(const Config& config, OperatorLogsOptions options,
                                      const std::function<bool(std::string_view)>& print,
                                      const Log& log);

}  // namespace hangar::host
