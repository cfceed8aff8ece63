// Bundles a TypeScript project, and makes the ConfigMap of it that workflows name.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "host/config.h"

#include <filesystem>
#include <string>

namespace hangar::commands {

struct MachineProject {
  std::filesystem::path directory = {};
  std::string entry = {};  // Below it; empty: the first of the usual ones that is there.
};

// The project as one bundle, made by esbuild, which is found in the project's node_modules/.bin or
// on PATH. Errors: NotFound (no esbuild, no entry), InvalidInput (esbuild refuses; its words are on
// stderr).
[[nodiscard]] Result<std::string> bundle_project(const MachineProject& project);

struct BuildMachineOptions {
  MachineProject project = {};
  std::string name = {};        // Of the ConfigMap; empty: the directory's.
  std::string namespace_ = {};  // Empty: none is said.
};

// The ConfigMap as YAML. The bundle is loaded once to see that it is a machine. Errors: those of
// bundle_project, those of check_machine, LimitExceeded (too large for a ConfigMap).
[[nodiscard]] Result<std::string> build_machine(const host::Config& config,
                                                const BuildMachineOptions& options, const Log& log);

}  // namespace hangar::commands
