// `hangar logs` where the host is not on this machine: what the operator, or the flight of an
// instance, printed, out of the log of the pod that runs it.
//
// The API server is asked as the user of the kubeconfig: who may read the Operator or the Airway,
// and the log of the host's pod may read this, and nothing of the host listens for it.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "host/config.h"
#include "host/output_logs.h"

#include <functional>
#include <string>
#include <string_view>

namespace hangar::commands {

// Where kubectl would look: the kubeconfig's, else "default".
[[nodiscard]] Result<std::string> kubeconfig_namespace(const host::Config& config);

// As print_output_logs, of an Operator or Airway that exists: to have printed nothing is no error.
// NotFound when there is no such object, no host says in which pod it runs it (--pod), or its pod
// is gone; Denied.
[[nodiscard]] Result<> print_pod_logs(const host::Config& config, host::LogsOptions options,
                                      const std::function<bool(std::string_view)>& print,
                                      const Log& log);

}  // namespace hangar::commands
