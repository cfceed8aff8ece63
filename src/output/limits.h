// Bounds of guests' output, each with the reason for its number.
#pragma once

#include "base/limits.h"

#include <cstdint>

namespace hangar::limits {

// Kept of an operator's last lines, for `hangar logs`.
inline constexpr std::uint64_t kOperatorLogBytesMax = 64 * kKiB;

}  // namespace hangar::limits
