// Bounds of machines and the state that they answer, each with the reason for its number.
#pragma once

#include "base/limits.h"

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace hangar::limits {

// What a workflow's status may hold. Together with the rest of the object it stays below what etcd
// takes (kObjectBytesMax). A machine's state is a few KiB usually.
inline constexpr std::uint64_t kWorkflowStateBytesMax = 256 * kKiB;
inline constexpr std::uint64_t kWorkflowOutputBytesMax = 64 * kKiB;

// Longer delays are mistakes, and the sum with the time of day must not overflow.
inline constexpr std::chrono::hours kWorkflowDelayMax{24 * 366 * 10};

// One step of a state machine, in processor time. It takes less than a millisecond; the room is for
// machines in slow languages on busy hosts.
inline constexpr std::chrono::seconds kMachineStepMax{2};

// A JavaScript machine has a few MiB; the room is for contexts with large documents in them.
inline constexpr std::uint64_t kMachineMemoryBytesMax = 128 * kMiB;

// What a machine answers: its state and what it asks for, and as much again for what of the state
// is not kept (XState's activities and metadata).
inline constexpr std::uint64_t kMachineAnswerBytesMax = kMiB;

// A JavaScript bundle. XState and a machine are 100 KB; its image takes some 20 times its size.
inline constexpr std::uint64_t kMachineBundleBytesMax = 8 * kMiB;

// What one step prints (console.log), for people.
inline constexpr std::uint64_t kMachineLogBytesMax = 16 * kKiB;

// Machines below one machine at a time, with theirs. One that spawns a machine per event and stops
// none is mistaken.
inline constexpr std::size_t kWorkflowActorsMax = 64;

}  // namespace hangar::limits
