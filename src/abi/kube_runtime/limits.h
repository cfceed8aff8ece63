// Bounds of one long-running guest, each with the reason for its number.
#pragma once

#include "base/limits.h"

#include <cstdint>

namespace hangar::limits {

// The bytes of one request of a guest: an object as the API server takes it, and its headers.
inline constexpr std::uint64_t kGuestRequestBytesMax = 4 * kMiB;

// Unfinished delays of one guest. A controller that reconciles an object a second, and again after
// an hour, has 3600: its timers cannot be cancelled.
inline constexpr std::uint32_t kGuestDelaysMax = 16'384;

// Requests into one guest that it has not answered. Answers have kGuestRequestBytesMax each, and
// all of one turn are in memory at once.
inline constexpr std::uint32_t kGuestInboundMax = 4;

}  // namespace hangar::limits
