// Bounds of requests of guests to the API server, each with the reason for its number.
#pragma once

#include "base/limits.h"

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace hangar::limits {

// Changes of one watch that are remembered, so that a guest's watch goes on from where its list
// ended. One that comes from further back gets 410 and lists again, as the API server has it.
inline constexpr std::uint32_t kGatewayHistoryMax = 4096;

// The same in bytes of objects: a hundred small ones. It stays in memory while all guests sleep,
// and who comes from further back costs a list at the API server.
inline constexpr std::uint64_t kGatewayHistoryBytesMax = 128 * kKiB;

// For how long a change is remembered at most. Clients begin their watches anew every five to ten
// minutes, from the last bookmark, which is a minute old at most.
inline constexpr std::chrono::minutes kGatewayHistoryAge{10};

// Lists that broke the history and are remembered as such; each is an API server that went away.
inline constexpr std::size_t kGatewayGapsMax = 64;

// How long the history goes on without a guest's watch: longer than a guest is between two of them.
inline constexpr std::chrono::seconds kGatewayLinger{120};

// How long to leave alone what could not be watched for everybody: longer than a storm of guests,
// shorter than a person waits after changing a permission.
inline constexpr std::chrono::seconds kGatewayRetry{15};

// Of path and query; selectors of a few hundred names fit.
inline constexpr std::size_t kGatewayTargetBytesMax = 32 * kKiB;

// How long an answer of the API server's authorisation is believed, and how many are remembered.
inline constexpr std::chrono::seconds kGatewayDecisionAge{10};
inline constexpr std::size_t kGatewayDecisionsMax = 10'000;

// How often a watch under way is authorised again and gets a bookmark (the API server's own pace),
// and how fast they are asked about: a thousand a minute.
inline constexpr std::chrono::seconds kGatewayRecheck{60};
inline constexpr std::chrono::milliseconds kGatewayRecheckPace{50};

}  // namespace hangar::limits
