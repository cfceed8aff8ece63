// The program under the name `yoke`: yoke's commands and no others, its command line as Go's flag
// package reads it, and its exit codes, so that scripts need not be changed.
#pragma once

#include <span>
#include <string>

namespace hangar::cli {

// `arguments` without the program's name. Returns the exit code.
[[nodiscard]] int run_yoke(std::span<const std::string> arguments);

}  // namespace hangar::cli
