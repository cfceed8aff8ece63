// Bounds of the webhooks' server, each with the reason for its number.
#pragma once

#include "base/limits.h"

#include <cstdint>

namespace hangar::limits {

// A conversion covers all objects of a list, or a page of it: as many bytes as the converter, which
// is a flight, may print. A review is smaller (review_reader.h).
inline constexpr std::uint64_t kConversionBytesMax = 16 * kMiB;

}  // namespace hangar::limits
