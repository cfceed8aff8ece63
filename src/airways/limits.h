// Bounds of releases and their history, each with the reason for its number.
#pragma once

#include "admission/limits.h"
#include "base/limits.h"
#include "wasm/limits.h"

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace hangar::limits {

// Outputs that take less memory than this are not counted for their namespace: those of usual
// releases, of which only as many are carried out at a time as there are reconciles. In a text like
// `[1,1,1` each digit takes up to 48 bytes.
inline constexpr std::uint64_t kFlightOutputFreeBytesMax = 2 * kMiB;

// Resources of one evaluation: each takes a request and a record in memory. Large charts have a few
// hundred.
inline constexpr std::uint64_t kFlightResourcesMax = 5000;

// A shorter fixDriftInterval would keep a core busy with one idle instance.
inline constexpr std::chrono::milliseconds kFixDriftIntervalMin{100};

// The longest run of a flight, whatever its author sets: shorter than the deadline of a reconcile.
inline constexpr std::chrono::seconds kFlightTimeMax{60};

// The shortest fixDriftInterval of a Flight: tenants write Flights, and each evaluation costs the
// API server requests.
inline constexpr std::chrono::seconds kFlightDriftIntervalMin{1};

// The shortest time between evaluations of a Flight that changes of its resources and of looked-up
// objects cause: some objects change many times a second.
inline constexpr std::chrono::seconds kFlightTrackedIntervalMin{1};

// Objects outside its release whose changes evaluate a Flight again: each takes an entry of about a
// KiB and a share of a watch, and tenants write Flights.
inline constexpr std::size_t kFlightFollowedMax = 64;

// Different objects that all flights of one namespace look up beyond their releases: 16 MiB. Large
// Airways have thousands of instances, each with a Secret of its own.
inline constexpr std::size_t kNamespaceLookupsMax = 16'384;

// References of earlier runs of one instance. Beyond this number, those of a failed run replace
// them instead of adding to them: a flight that fails may look up or print other names each time.
inline constexpr std::size_t kTrackedLookupsMax = 1000;
inline constexpr std::size_t kTrackedReleasedMax = 2 * kFlightResourcesMax;

// Entries of a Flight's inventory: each has at most 600 bytes, and an object at most 1.5 MiB.
inline constexpr std::size_t kInventoryMax = 1000;

// A revision after decompression: a flight's output and what we add to each of its resources.
inline constexpr std::uint64_t kRevisionBytesMax = 2 * kFlightOutputBytesMax;

// The memory that a revision may take while it is parsed (json::parsed_bytes_max()): as much as
// the largest text of long strings, and not as much as one of the same size like `[1,1,1`.
inline constexpr std::uint64_t kRevisionMemoryBytesMax = 3 * kRevisionBytesMax;

// Secrets of one release's history whose names and annotations are read; and the text of the
// revisions whose resources may be in the cluster: the active one and interrupted ones. A user who
// may create Secrets in a namespace can add some.
inline constexpr std::size_t kHistoryRevisionsMax = 2000;
inline constexpr std::uint64_t kHistoryBytesMax = 2 * kRevisionBytesMax;

// Revisions of all releases that a listing reads, about 300 bytes of memory each.
inline constexpr std::size_t kCatalogRevisionsMax = 50'000;

// The largest memory of a flight: 65536 pages of 64 KiB, the address space of a 32-bit guest.
inline constexpr std::uint32_t kFlightMemoryMibMax = 4096;

// Resources of one stage that are applied at the same time: enough to hide the API server's
// latency, few enough that a release of a thousand objects does not crowd out the requests of
// others.
inline constexpr std::size_t kParallelAppliesMax = 16;

// Different warnings of the API server that one rehearsal passes on. The API server drops those
// beyond 4096 characters in all.
inline constexpr std::size_t kRehearsalWarningsMax = 32;

// Lookups of one run that are recorded, about 40 bytes each; the flight decides how many it makes.
inline constexpr std::size_t kRecordedLookupsMax = 128;
// Changes that a run is recorded with, for each instance; a flight may track thousands of objects.
inline constexpr std::size_t kRecordedReasonsMax = 32;

// The processor time of one evaluation of a readiness rule in Lua. It takes milliseconds; the rest
// is a reserve. The memory: a Go program with an interpreter and a resource has 10 to 15 MiB. The
// interpreter's own bounds (third_party/lua/) are below this one.
inline constexpr std::chrono::seconds kLuaRuleTimeMax{5};
inline constexpr std::uint64_t kLuaRuleMemoryBytesMax = 64 * kMiB;

// All such evaluations for the readiness of one release: shorter than the deadline of a reconcile.
inline constexpr std::chrono::seconds kLuaRulesTimeMax{20};

// The interpreter as a module; it has 5.5 MB.
inline constexpr std::uint64_t kLuaInterpreterBytesMax = 16 * kMiB;

// The interpreter's answer: its error is shortened to a KiB, a character of which JSON may write
// as six.
inline constexpr std::uint64_t kLuaAnswerBytesMax = 16 * kKiB;

// How long a stage may take to become ready, as in yoke, and a prune until everything is gone.
inline constexpr std::chrono::seconds kStageReadyMax{30};
inline constexpr std::chrono::seconds kPruneMax{120};

static_assert(kConversionBytesMax >= kFlightOutputBytesMax,
              "what a converter has printed, it can be given again");

}  // namespace hangar::limits
