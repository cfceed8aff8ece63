// Checks which Go toolchains can build guests.
#pragma once

#include "base/result.h"

#include <string>
#include <string_view>

namespace hangar::go_build {

// `version` is the output of `go env GOVERSION`: "go1.26.8". Returns a warning for the user when
// guests were not tested with that version; empty when they were. InvalidInput for a version that
// cannot build guests, and for text that is not a version.
[[nodiscard]] Result<std::string> check_toolchain(std::string_view version);

}  // namespace hangar::go_build
