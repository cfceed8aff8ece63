// Bounds of one long-running guest, each with the reason for its number.
#pragma once

#include "base/limits.h"

#include <chrono>
#include <cstdint>

namespace hangar::limits {

// The bytes of one request of a guest: an object as the API server takes it, and its headers.
inline constexpr std::uint64_t kGuestRequestBytesMax = 4 * kMiB;

// The headers of one such request: as many as the host takes from a server (http/limits.h).
inline constexpr std::uint64_t kGuestRequestHeaderBytesMax = 256 * kKiB;

// Requests of one guest in flight, watches included; the next one waits.
inline constexpr std::uint32_t kGuestRequestsMax = 256;

// Requests of one guest that wait behind those in flight, and the bytes of their bodies. A
// controller that starts with a few thousand objects makes one request for each at once.
inline constexpr std::uint32_t kGuestRequestsWaitingMax = 16'384;
inline constexpr std::uint64_t kGuestRequestsWaitingBytesMax = 64 * kMiB;

// The most bytes that a long-running guest may print in one turn; the rest is dropped and counted.
inline constexpr std::uint64_t kOperatorOutputBytesMax = 256 * kKiB;

// One line of that output; a longer one is cut into several, as container runtimes do.
inline constexpr std::uint64_t kOperatorLineBytesMax = 16 * kKiB;

// What an error quotes of a panic that a guest has printed: its reason, and its place.
inline constexpr std::uint64_t kPanicReasonBytesMax = 256;
inline constexpr std::uint64_t kPanicPlaceBytesMax = 256;

// Unfinished delays of one guest. A controller that reconciles one object per second, and each
// again after an hour, has 3600: its timers cannot be cancelled.
inline constexpr std::uint32_t kGuestDelaysMax = 16'384;

// A delay that is practically endless, and far from an overflow in any unit.
inline constexpr std::chrono::milliseconds kGuestDelayMax = std::chrono::hours(24 * 365);

// Unanswered requests into one guest: concurrent reviews of some clients, and one for metrics.
inline constexpr std::uint32_t kGuestInboundMax = 8;

// The bodies of the answers of one turn, which are in memory at the same time: two of the largest.
inline constexpr std::uint64_t kGuestInboundAnswersBytesMax = 2 * kGuestRequestBytesMax;

}  // namespace hangar::limits
