// `hangar run DIR`: the operators of a directory, without a custom resource in the cluster.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "base/time.h"
#include "host/config.h"

#include <filesystem>
#include <optional>

namespace hangar::commands {

struct RunDirectoryOptions {
  std::filesystem::path directory;      // With wasm_config.yaml in it.
  std::optional<Duration> sleep_after;  // Idle for so long; nothing: operators stay in memory.
};

// Runs what `directory` names, as the user of the kubeconfig, until SIGTERM or SIGINT. An error is
// what stops it from starting: the directory, the configuration, a module. Later failures of a
// guest are logged, and it is started again. The calling thread becomes the loop thread.
[[nodiscard]] Result<> run_directory(const host::Config& config, RunDirectoryOptions options,
                                     const Log& log);

}  // namespace hangar::commands
