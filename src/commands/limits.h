// Bounds of the input of commands, each with the reason for its number.
#pragma once

#include "wasm/limits.h"

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace hangar::limits {

// Resources on stdin, as a flight prints them, or the input of a flight.
inline constexpr std::uint64_t kTakeoffInputBytesMax = kFlightOutputBytesMax;

// A property that is written into a module: the module grows by it.
inline constexpr std::uint64_t kSchematicInputBytesMax = kModuleBytesMax;

// One line of a host's log, as the API server sends it. The host's own lines are far shorter; a
// runtime may print others.
inline constexpr std::uint64_t kPodLogLineBytesMax = 8 * kMiB;

// Differences of a release that the console's page shows: what a person can still read, and a
// browser shows without delay.
inline constexpr std::size_t kConsoleDriftBytesMax = kMiB;
// Resources of a release that are compared for the page, as many as a page of a list has.
inline constexpr std::size_t kConsoleDriftResourcesMax = 500;
// They are read one after the other, in a few milliseconds each.
inline constexpr std::chrono::seconds kConsoleDriftMax{60};

}  // namespace hangar::limits
