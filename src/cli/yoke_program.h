// The program under the name `yoke`: only yoke's commands, with a command line as Go's flag package
// reads it and yoke's exit codes, so that scripts need no change.
#pragma once

#include <span>
#include <string>

namespace hangar::cli {

// `arguments` without the program's name. Returns the exit code.
[[nodiscard]] int run_yoke(std::span<const std::string> arguments);

}  // namespace hangar::cli
