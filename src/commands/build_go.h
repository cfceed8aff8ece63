// Makes a module of a Go program, and puts it where a host fetches it from.
#pragma once

#include "base/result.h"
#include "host/config.h"

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace hangar::commands {

struct BuildGoOptions {
  std::string program;  // As go_build::BuildOptions has it.
  // Empty: the program's name and ".wasm" in the current directory, or nowhere if it is pushed.
  std::filesystem::path output = {};
  std::string tags = {};
  std::string ldflags = {};
  std::string push = {};  // "oci://registry/repository:tag"; empty: nowhere.
  // The registry may be without TLS, or with a certificate that cannot be verified.
  bool insecure = false;
};

// What goes into an Operator's spec.module.url: the file's URL, or the pushed artifact's by digest.
// `say` gets lines for people meanwhile. Blocking, for minutes. Errors: those of go_build::build()
// and modules::push_module().
[[nodiscard]] Result<std::string> build_go(const host::Config& config,
                                           const BuildGoOptions& options,
                                           const std::function<void(std::string_view)>& say);

}  // namespace hangar::commands
