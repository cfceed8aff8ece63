// `hangar logs` if the host is not on this machine: reads the output of the operator, or of the
// flight of an instance, from the log of the host's pod.
//
// The requests use the kubeconfig's user, who needs the rights to read the Operator or Airway and
// the log of the host's pod. The host itself serves nothing for this.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "commands/output_logs.h"
#include "host/config.h"

#include <functional>
#include <string>
#include <string_view>

namespace hangar::commands {

// The namespace that kubectl would use: the kubeconfig's, or "default".
[[nodiscard]] Result<std::string> kubeconfig_namespace(const host::Config& config);

// Like print_output_logs, for an Operator or Airway that exists: missing output is not an error.
// NotFound when there is no such object, its status has no pod (the host runs without --pod), or
// the pod is gone; Denied.
[[nodiscard]] Result<> print_pod_logs(const host::Config& config, LogsOptions options,
                                      const std::function<bool(std::string_view)>& print,
                                      const Log& log);

}  // namespace hangar::commands
