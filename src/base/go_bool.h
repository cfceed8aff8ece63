// Booleans as Go reads them.
#pragma once

#include "base/result.h"

#include <string_view>

namespace hangar {

// strconv.ParseBool, with its error: InvalidInput.
[[nodiscard]] Result<bool> parse_go_bool(std::string_view text);

}  // namespace hangar
