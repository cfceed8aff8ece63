// Bounds of releases and their history, each with the reason for its number.
#pragma once

#include "base/limits.h"

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace hangar::limits {

// What one evaluation may ask us to apply: each is a request and a record of ours. Large charts
// have a few hundred.
inline constexpr std::uint64_t kFlightResourcesMax = 5000;

// A shorter fixDriftInterval would keep a core busy with one idle instance.
inline constexpr std::chrono::milliseconds kFixDriftIntervalMin{100};

// One evaluation, whatever its author says: shorter than the deadline of a reconcile.
inline constexpr std::chrono::seconds kFlightTimeMax{60};

// Tenants write Flights, and what is done again and again costs the API server a request each time.
inline constexpr std::chrono::seconds kFlightDriftIntervalMin{1};

// Entries of a Flight's inventory: each has 600 bytes at most, and an object 1.5 MiB.
inline constexpr std::size_t kInventoryMax = 1000;

// A revision after decompression: a flight's output and what we add to each of its resources.
inline constexpr std::uint64_t kRevisionBytesMax = 2 * kFlightOutputBytesMax;

// Secrets of one release's history, of which the names and annotations are read, and the text of
// those that may be in the cluster: the active revision and interrupted ones. Whoever may create
// Secrets in a namespace can plant some there.
inline constexpr std::size_t kHistoryRevisionsMax = 2000;
inline constexpr std::uint64_t kHistoryBytesMax = 2 * kRevisionBytesMax;

// Revisions of all releases that a listing reads, some 300 bytes of memory each.
inline constexpr std::size_t kCatalogRevisionsMax = 50'000;

// Resources of one stage that are applied at the same time: enough to hide the API server's
// latency, few enough that a release of a thousand objects does not crowd out everybody else's
// requests.
inline constexpr std::size_t kParallelAppliesMax = 16;

// Different warnings of the API server that one rehearsal passes on: it cuts off what comes to more
// than 4096 characters.
inline constexpr std::size_t kRehearsalWarningsMax = 32;

// Lookups of one run that are recorded, some 40 bytes each; a flight chooses how often it asks.
inline constexpr std::size_t kRecordedLookupsMax = 128;

// What a stage may take until it is ready, as yoke has it; a prune until everything is gone.
inline constexpr std::chrono::seconds kStageReadyMax{30};
inline constexpr std::chrono::seconds kPruneMax{120};

}  // namespace hangar::limits
