// Which Go toolchains make guests.
#pragma once

#include "base/result.h"

#include <string>
#include <string_view>

namespace hangar::go_build {

// `version` as `go env GOVERSION` has it: "go1.26.8". Returns what to tell the user of one that
// guests were not tested with; empty: it is one of those. InvalidInput for one that cannot make
// guests, and for what is not a version.
[[nodiscard]] Result<std::string> check_toolchain(std::string_view version);

}  // namespace hangar::go_build
