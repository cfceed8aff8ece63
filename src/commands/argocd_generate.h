// The command of the plugin for Argo CD: prints the resources of an Application. The flight itself
// runs in the plugin server, which caches its code.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "host/config.h"

#include <span>
#include <string>

namespace hangar::commands {

inline constexpr const char* kArgoServerUrl = "http://127.0.0.1:3666";

struct ArgoGenerateOptions {
  std::string server_url = kArgoServerUrl;
  std::span<const std::string> variables;  // The environment: "NAME=value".
};

// Returns one resource per line, as JSON. The working directory is that of the Application. Uses
// the cluster only if the parameters refer to Secrets.
[[nodiscard]] Result<std::string> generate_for_argocd(const host::Config& config,
                                                      const ArgoGenerateOptions& options,
                                                      const Log& log);

}  // namespace hangar::commands
