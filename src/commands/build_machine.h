// Bundles a TypeScript project, and creates the manifest of the ConfigMap that workflows refer to.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "commands/streams.h"
#include "host/config.h"

#include <filesystem>
#include <string>

namespace hangar::commands {

struct MachineProject {
  std::filesystem::path directory = {};
  std::string entry = {};  // Relative to the directory; empty: the first usual name that exists.
};

// Bundles the project with esbuild, which is searched in the project's node_modules/.bin and on
// PATH. `show`: as RunMachineOptions::show. Errors: NotFound (no esbuild, no entry), InvalidInput
// (esbuild fails; its messages are on stderr).
[[nodiscard]] Result<std::string> bundle_project(const MachineProject& project, const Say& show);

struct BuildMachineOptions {
  MachineProject project = {};
  std::string name = {};        // Name of the ConfigMap; empty: that of the directory.
  std::string namespace_ = {};  // Empty: none in the manifest.
  Say show = {};                // As RunMachineOptions::show.
};

// The ConfigMap as YAML. Loads the bundle once to check that it is a machine. Errors: those of
// bundle_project and check_machine, LimitExceeded (too large for a ConfigMap).
[[nodiscard]] Result<std::string> build_machine(const host::Config& config,
                                                const BuildMachineOptions& options, const Log& log);

}  // namespace hangar::commands
