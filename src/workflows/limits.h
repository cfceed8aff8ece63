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

// One event; the API server accepts 256 KiB of annotations, and signals arrive as annotations.
inline constexpr std::uint64_t kWorkflowEventBytesMax = 64 * kKiB;
inline constexpr std::size_t kWorkflowTimersMax = 256;

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
