// Bounds of guests' output, each with the reason for its number.
#pragma once

#include "base/limits.h"

#include <cstdint>

namespace hangar::limits {

// Size of the last output of an operator that is kept for `hangar logs`.
inline constexpr std::uint64_t kOperatorLogBytesMax = 64 * kKiB;

// Size of one line; a longer one is split into several, as container runtimes do.
inline constexpr std::uint64_t kPrintedLineBytesMax = 16 * kKiB;

// The output of one turn, after which the host checks the guest's rate again.
inline constexpr std::uint64_t kPrintedAtOnceBytesMax = 256 * kKiB;

// Rate of all guests of one namespace: that of four guests at their default rate. Such a log has 84
// GiB a day.
inline constexpr std::uint64_t kNamespaceOutputBytesPerSecond = kMiB;

}  // namespace hangar::limits
