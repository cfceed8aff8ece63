// Bounds of guests' requests to the API server, each with the reason for its number.
#pragma once

#include "base/limits.h"

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace hangar::limits {

// How many changes of one feed are kept, so that a guest's watch resumes where its list ended. A
// watch from before the oldest one is compared with a list; see watching.h.
inline constexpr std::uint32_t kGatewayHistoryMax = 4096;

// The same in bytes of objects and of their earlier states: about a hundred small ones. They stay
// in memory while all guests sleep; a watch from further back costs one list at the API server.
inline constexpr std::uint64_t kGatewayHistoryBytesMax = 256 * kKiB;

// How long a change is kept at most. Clients restart their watches every five to ten minutes, from
// the last bookmark, which is at most a minute old.
inline constexpr std::chrono::minutes kGatewayHistoryAge{10};

// Gaps that the history remembers. Each stands for one time that the API server was away.
inline constexpr std::size_t kGatewayGapsMax = 64;

// How long an unused feed and its history are kept: longer than a guest takes between two watches.
inline constexpr std::chrono::seconds kGatewayLinger{120};

// How long a feed that failed is not tried again: longer than many guests take to start together,
// shorter than a person waits after changing a permission.
inline constexpr std::chrono::seconds kGatewayRetry{15};

// The same for a feed whose objects were too large for the host: each attempt reads as many bytes
// of objects as the namespace may hold.
inline constexpr std::chrono::seconds kGatewayTooLargeRetry{120};

// Requests that one guest may have open, watches included, and requests that may wait behind them:
// the numbers that the contract of operators allows (abi/kube_runtime/limits.h).
inline constexpr std::uint32_t kGatewayRequestsOpenMax = 256;
inline constexpr std::uint32_t kGatewayRequestsWaitingMax = 16'384;

// The changes of a feed that wait while its viewers are being shown earlier ones, in bytes of their
// objects. Beyond it, the oldest are shown at once; if the differences of a list wait as well, the
// viewers have to list again.
inline constexpr std::uint64_t kGatewayUnshownBytesMax = 16 * kMiB;

// Lists whose differences wait to be shown, for viewers that are served more slowly than the cache
// lists. Beyond it the viewers have to list again.
inline constexpr std::ptrdiff_t kGatewayUnshownListsMax = 4;

// How many viewers are shown a change before the rest of the loop has its turn: about a
// millisecond.
inline constexpr std::uint64_t kGatewaySliceChanges = 256;

// Length of path and query; selectors of a few hundred names fit.
inline constexpr std::size_t kGatewayTargetBytesMax = 32 * kKiB;

// How long an answer of the API server's authorisation is valid, and how many are kept.
inline constexpr std::chrono::seconds kGatewayDecisionAge{10};
inline constexpr std::size_t kGatewayDecisionsMax = 10'000;

// How often an open watch is authorised again and gets a bookmark (the API server's own pace), and
// the pause between two of these reviews: about a thousand a minute.
inline constexpr std::chrono::seconds kGatewayRecheck{60};
inline constexpr std::chrono::milliseconds kGatewayRecheckPace{50};

}  // namespace hangar::limits
