// Bounds of machines and of their answers, each with the reason for its number.
#pragma once

#include "base/limits.h"

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace hangar::limits {

// The state in a workflow's status. Together with the rest of the object it stays below etcd's
// bound (kObjectBytesMax). The state of a machine usually has a few KiB.
inline constexpr std::uint64_t kWorkflowStateBytesMax = 256 * kKiB;
inline constexpr std::uint64_t kWorkflowOutputBytesMax = 64 * kKiB;

// Longer delays are mistakes, and the sum with the time of day must not overflow.
inline constexpr std::chrono::hours kWorkflowDelayMax{24 * 366 * 10};

// The processor time of one step of a machine. A step takes less than a millisecond; the rest is a
// reserve for machines in slow languages on busy hosts.
inline constexpr std::chrono::seconds kMachineStepMax{2};

// A JavaScript machine has a few MiB; the rest is a reserve for contexts with large documents.
inline constexpr std::uint64_t kMachineMemoryBytesMax = 128 * kMiB;

// The answer of a machine: its state and actions, and the same amount again for the parts of the
// state that are not kept (XState's activities and metadata).
inline constexpr std::uint64_t kMachineAnswerBytesMax = kMiB;

// The timers that one step starts and cancels, together: four times as many as a workflow may have.
inline constexpr std::size_t kMachineStepTimersMax = 1024;

// The delays of the present states of a machine and its actors: as many as a workflow may have
// timers. A definition has room for thousands, each of which is compared with every timer.
inline constexpr std::size_t kMachineDelaysMax = 256;

// A JavaScript bundle. XState and a machine have 100 KB; the memory image has some 20 times
// that size.
inline constexpr std::uint64_t kMachineBundleBytesMax = 8 * kMiB;

// The output of one step (console.log), for people.
inline constexpr std::uint64_t kMachineLogBytesMax = 16 * kKiB;

// The part of that output that the message of a trap quotes: the beginning of a panic.
inline constexpr std::size_t kMachineFaultOutputBytesMax = kKiB;

// Concurrent actors below one machine, at any depth. A machine that spawns one per event and stops
// none has a bug.
inline constexpr std::size_t kWorkflowActorsMax = 64;

}  // namespace hangar::limits
