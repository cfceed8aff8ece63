// Bounds of what guests print, each with the reason for its number.
#pragma once

#include "base/limits.h"

#include <cstdint>

namespace hangar::limits {

// Of its last lines, for `hangar logs`.
inline constexpr std::uint64_t kOperatorLogBytesMax = 64 * kKiB;

}  // namespace hangar::limits
