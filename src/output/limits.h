// Bounds of guests' output, each with the reason for its number.
#pragma once

#include "base/limits.h"

#include <cstdint>

namespace hangar::limits {

// Kept of an operator's last lines, for `hangar logs`.
inline constexpr std::uint64_t kOperatorLogBytesMax = 64 * kKiB;

// One line; a longer one is cut into several, as container runtimes do.
inline constexpr std::uint64_t kPrintedLineBytesMax = 16 * kKiB;

// What a guest may print before the host looks at its rate again: one turn's output.
inline constexpr std::uint64_t kPrintedAtOnceBytesMax = 256 * kKiB;

// Of all guests of one namespace: four guests at their default rate. A log of that much is 84 GiB
// a day.
inline constexpr std::uint64_t kNamespaceOutputBytesPerSecond = kMiB;

}  // namespace hangar::limits
