// Runs the programs that kubeconfig files name to get credentials
// (https://kubernetes.io/docs/reference/config-api/client-authentication.v1/).
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "kube/auth/kubeconfig.h"

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

namespace hangar::kube {

struct ExecCredential {
  std::string token;
  std::string certificate_pem;
  std::string key_pem;
  std::optional<WallTime> expires;
};

// What KUBERNETES_EXEC_INFO tells the plugin. `ca_pem`: that of the cluster, wherever it came from.
[[nodiscard]] std::string exec_info(const ExecPlugin& plugin, const KubeconfigCluster& cluster,
                                    std::string_view ca_pem);

// What the plugin printed. InvalidInput says what is wrong with it, without repeating any of it.
[[nodiscard]] Result<ExecCredential> parse_exec_credential(std::string_view output,
                                                           const ExecPlugin& plugin);

// Runs it with /dev/null as standard input and waits for its end; blocks, so not for the loop
// thread. Errors: Unavailable when it cannot be started, fails (with the end of its stderr) or is
// not done within `deadline`; Cancelled; InvalidInput when what it prints is no credential. It is
// killed together with its children on every path but success.
[[nodiscard]] Result<ExecCredential> run_exec_plugin(const ExecPlugin& plugin,
                                                     const std::string& info,
                                                     std::chrono::milliseconds deadline,
                                                     const std::stop_token& stop);

}  // namespace hangar::kube
