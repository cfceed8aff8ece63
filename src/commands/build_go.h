// Builds a module from a Go program, and pushes it to a registry if required.
#pragma once

#include "base/result.h"
#include "host/config.h"

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace hangar::commands {

struct BuildGoOptions {
  std::string program;  // As in go_build::BuildOptions.
  // Empty: the program's name and ".wasm" in the current directory; if it is pushed, no file is
  // kept.
  std::filesystem::path output = {};
  std::string tags = {};
  std::string ldflags = {};
  std::string push = {};  // "oci://registry/repository:tag"; empty: do not push.
  // Allow a registry without TLS, or with a certificate that cannot be verified.
  bool insecure = false;
};

// Returns the value for an Operator's spec.module.url: the URL of the file, or of the pushed
// artifact with its digest. `say` receives progress messages for people. Blocks for minutes.
// Errors: those of go_build::build() and modules::push_module().
[[nodiscard]] Result<std::string> build_go(const host::Config& config,
                                           const BuildGoOptions& options,
                                           const std::function<void(std::string_view)>& say);

}  // namespace hangar::commands
