// Bounds of a workflow's ledger, each with the reason for its number.
#pragma once

#include "base/limits.h"

#include <cstddef>
#include <cstdint>

namespace hangar::limits {

// Actions that were requested and have not finished, and events that no machine has decided about.
inline constexpr std::size_t kWorkflowOutboxMax = 128;
inline constexpr std::uint64_t kWorkflowOutboxBytesMax = 256 * kKiB;
inline constexpr std::size_t kWorkflowInboxMax = 256;
inline constexpr std::uint64_t kWorkflowInboxBytesMax = 256 * kKiB;

// The names of the present states, as people read them: for each event the host compares all of
// them with those before, on the loop's thread. Large machines have some hundred bytes.
inline constexpr std::uint64_t kWorkflowValueBytesMax = 64 * kKiB;
// The paths of these states ("a.b.c"), which the host builds: the name of a state is part of the
// path of every state below it, so that a value of 64 KiB can have paths of hundreds of MiB.
inline constexpr std::uint64_t kWorkflowPathBytesMax = 256 * kKiB;
// Actors that one step may stop: the host looks for the actions and timers of each. Sixteen times
// as many as there may be at a time.
inline constexpr std::size_t kWorkflowStoppedMax = 1024;

// One event; the API server accepts 256 KiB of annotations, and signals arrive as annotations.
inline constexpr std::uint64_t kWorkflowEventBytesMax = 64 * kKiB;
inline constexpr std::size_t kWorkflowTimersMax = 256;

// The number of an action, of a transition, or of attempts. No workflow gets there: it would take
// ten years of ten a second. Numbers of timers begin above it (number_of_timer()).
inline constexpr std::int64_t kWorkflowNumberMax = (std::int64_t{1} << 32) - 1;

// Objects that one workflow has made and not deleted.
inline constexpr std::size_t kWorkflowResourcesMax = 512;
// Objects that the workflows of one namespace wait for, in addition to those that they have made.
inline constexpr std::size_t kWorkflowWatchesMax = 1024;
inline constexpr std::size_t kWorkflowHistoryMax = 200;
inline constexpr std::uint64_t kWorkflowHistoryBytesMax = 64 * kKiB;

// Ids of accepted signals, so that none counts twice.
inline constexpr std::size_t kWorkflowSignalsRemembered = 128;

// Steps of one machine in a row; then others get their turn, so that a machine that answers itself
// for ever does not block them.
inline constexpr std::size_t kWorkflowStepsMax = 64;

// Loaded machines; each needs an image of some 2 MB on disk, and a part of it in the page cache.
inline constexpr std::size_t kMachinesKeptMax = 256;

}  // namespace hangar::limits
