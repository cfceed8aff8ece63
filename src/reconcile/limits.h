// Bounds of the Lease, Events and conditions, each with the reason for its number.
#pragma once

#include "base/limits.h"

#include <chrono>
#include <cstdint>

namespace hangar::limits {

// metav1.Condition's schema allows no longer message.
inline constexpr std::uint64_t kConditionMessageBytesMax = 32 * kKiB;

// Documents of objects that need no more memory than this each (json::parsed_bytes_max()) are not
// counted for the namespace: those of usual objects. A MiB of usual JSON needs 7 MiB, one of
// `[1,1,1` 34 MiB, and one of long strings 2 MiB.
inline constexpr std::uint64_t kDocumentFreeBytesMax = 8 * kMiB;

// The memory that a status may need to be parsed only to report that its object waits for memory.
// An inventory of a thousand resources needs 2 MiB.
inline constexpr std::uint64_t kWaitStatusBytesMax = 4 * kMiB;

// A wait for the processor time of a namespace is reported after this time, and so is its end. A
// namespace at its limit waits for seconds between any two turns, and reporting each wait would
// cost two writes.
inline constexpr std::chrono::seconds kProcessorWaitToldAfter{10};

// Waits with less than this between them count as one: a guest with short turns waits before each.
inline constexpr std::chrono::seconds kProcessorWaitsJoined{1};

// client-go's defaults for leader election: lease 15 s, renew deadline 10 s, retry 2 s.
inline constexpr std::chrono::seconds kLeaseDuration{15};
inline constexpr std::chrono::seconds kLeaseRenewDeadline{10};
inline constexpr std::chrono::seconds kLeaseRetryPeriod{2};

// The same as in client-go's event correlator: a series per object, reason and message, and a spam
// filter for each object.
inline constexpr std::uint32_t kEventSeriesMax = 4096;

// Events that wait to be written, shared by the namespaces that have any; further ones are dropped.
inline constexpr std::uint32_t kEventsPendingMax = 1000;

static_assert(kLeaseRenewDeadline < kLeaseDuration,
              "a leader that cannot renew stops acting before another may start");

}  // namespace hangar::limits
