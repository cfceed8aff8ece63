// Pushes a module to an OCI registry under several tags: yoke's command stow.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "commands/streams.h"
#include "host/config.h"

#include <filesystem>
#include <string>
#include <vector>

namespace hangar::commands {

struct StowOptions {
  std::filesystem::path module;        // A file; compressed with gzip if its name ends in ".gz".
  std::string target;                  // "oci://registry/repository:tag".
  std::vector<std::string> tags = {};  // In addition to latest and sha256_<hex>.
  bool insecure = false;
  Say show = {};  // The present step, in place of the last one; an empty text removes it.
};

// Errors: InvalidInput (not a WebAssembly module, not a valid target), and those of
// modules::push_module.
[[nodiscard]] Result<Finished> stow(const host::Config& config, const StowOptions& options,
                                    const Streams& streams, const Log& log);

}  // namespace hangar::commands
