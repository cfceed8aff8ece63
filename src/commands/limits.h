// Bounds of the input of commands, each with the reason for its number.
#pragma once

#include "wasm/limits.h"

#include <cstdint>

namespace hangar::limits {

// Resources on stdin, as a flight prints them, or the input of a flight.
inline constexpr std::uint64_t kTakeoffInputBytesMax = kFlightOutputBytesMax;

// A property that is written into a module: the module grows by it.
inline constexpr std::uint64_t kSchematicInputBytesMax = kModuleBytesMax;

}  // namespace hangar::limits
