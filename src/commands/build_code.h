// Compiles modules ahead of time, for hosts without a compiler, and signs the code.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "commands/streams.h"
#include "host/config.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace hangar::commands {

enum class CodeProcessor : std::uint8_t {
  Any,   // Every processor of this architecture.
  This,  // The features of this processor: faster code, for machines with the same features.
};

struct BuildCodeOptions {
  std::vector<std::string> modules;  // Each a file or a URL.
  bool with_interpreters = false;    // Also those of JavaScript and Lua, which hangar contains.
  std::filesystem::path key;         // The builder's private key, in PEM.
  std::filesystem::path output;      // A directory; created when it is missing.
  CodeProcessor processor = CodeProcessor::Any;
  Say show = {};  // As RunMachineOptions::show.
};

// Writes two files for each form in which hosts compile a module (signatures::PrebuiltFiles),
// replaces older ones, and prints the paths of the code. Blocks for seconds to minutes. Errors:
// InvalidInput (the key, a module), those of fetch_module() and wasm::compile(), with the module's
// name.
[[nodiscard]] Result<Finished> build_code(const host::Config& config,
                                          const BuildCodeOptions& options, const Streams& streams,
                                          const Log& log);

}  // namespace hangar::commands
