// Runs the programs that kubeconfig files name to obtain credentials
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

// The value of KUBERNETES_EXEC_INFO for the plugin. `ca_pem`: the CA certificates of the cluster,
// whether they came from a file or from the kubeconfig.
[[nodiscard]] std::string exec_info(const ExecPlugin& plugin, const KubeconfigCluster& cluster,
                                    std::string_view ca_pem);

// Parses the plugin's output. InvalidInput names the mistake and repeats none of the output.
[[nodiscard]] Result<ExecCredential> parse_exec_credential(std::string_view output,
                                                           const ExecPlugin& plugin);

// Runs the plugin with /dev/null as standard input and waits for it to exit. Blocks, so it must not
// run on the loop thread. Errors: Unavailable when the plugin cannot be started, fails (with the
// end of its stderr) or has not finished within `deadline`; Cancelled; InvalidInput when its output
// is not a credential. The plugin is killed together with its children on every path but success.
[[nodiscard]] Result<ExecCredential> run_exec_plugin(const ExecPlugin& plugin,
                                                     const std::string& info,
                                                     std::chrono::milliseconds deadline,
                                                     const std::stop_token& stop);

}  // namespace hangar::kube
