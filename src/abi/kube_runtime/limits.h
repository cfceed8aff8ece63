// Bounds of one long-running guest, each with the reason for its number.
#pragma once

#include "base/limits.h"

#include <cstdint>

namespace hangar::limits {

// What one guest may send in a request: an object as the API server takes it, and its headers.
inline constexpr std::uint64_t kGuestRequestBytesMax = 4 * kMiB;

// Delays of one guest that have not ended. A controller that looks at an object a second, and again
// after an hour, has 3600: its timers cannot be taken back.
inline constexpr std::uint32_t kGuestDelaysMax = 16'384;

}  // namespace hangar::limits
