// `hangar run DIR`: runs the operators of a directory, without custom resources in the cluster.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "base/time.h"
#include "host/config.h"

#include <filesystem>
#include <optional>

namespace hangar::commands {

struct RunDirectoryOptions {
  std::filesystem::path directory;      // Has a wasm_config.yaml.
  std::optional<Duration> sleep_after;  // Idle time; nothing: operators stay in memory.
};

// Runs the operators of `directory`, as the kubeconfig's user, until SIGTERM or SIGINT. Returns an
// error if it cannot start: the directory, the configuration, a module. Later failures of a guest
// are logged, and the guest is restarted. The calling thread becomes the loop thread.
[[nodiscard]] Result<> run_directory(const host::Config& config, RunDirectoryOptions options,
                                     const Log& log);

}  // namespace hangar::commands
