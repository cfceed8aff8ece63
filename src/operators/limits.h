// Bounds of operators, each with the reason for its number.
#pragma once

#include "base/limits.h"

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace hangar::limits {

// Answers that wait for a guest which does not take them (it sleeps, or is in a long turn). A guest
// with more is started anew: its lists are shorter than that.
inline constexpr std::uint64_t kGuestAnswersBytesMax = 64 * kMiB;

// A guest that failed is started again after 1 s, then twice as long each time, as the kubelet does
// with containers (which begins at 10 s); a guest that ran for so long begins anew.
inline constexpr std::chrono::seconds kOperatorBackoffMin{1};
inline constexpr std::chrono::seconds kOperatorBackoffMax{300};
inline constexpr std::chrono::seconds kOperatorStableMin{600};

// A guest that could not go to sleep (the disk is full) stays in memory for so long: an attempt
// costs a look at all of its memory and a line in the log.
inline constexpr std::chrono::seconds kOperatorSleepRetry{10};

// How long a guest stays in memory for the answer to a request, which the API server usually gives
// within milliseconds: less than sleeping and waking up again would cost.
inline constexpr std::chrono::milliseconds kOperatorAnswerWait{100};

// Operators that start at once. Each holds a guest, requests and their buffers until it has listed
// what it watches; a host that starts a thousand together needs three times the heap, and keeps it,
// for what stays lies between what was needed for a moment. Nor do a thousand lists at once do the
// API server any good. Who is not done after the wait makes room all the same.
inline constexpr std::size_t kOperatorStartsMax = 8;
inline constexpr std::chrono::milliseconds kOperatorStartWait{100};

// Turns that are under way at once, those that wait for a processor included. Each holds a guest's
// memory and its answers as text; of those beyond, only pointers wait.
inline constexpr std::size_t kOperatorTurnsMax = 64;

// Operators with metrics of their own, some sixty series each; the others share one of each.
inline constexpr std::size_t kOperatorSeriesMax = 500;

// Kinds of answers (method and code) that one of them tells apart.
inline constexpr std::size_t kOperatorAnswerKindsMax = 40;

}  // namespace hangar::limits
