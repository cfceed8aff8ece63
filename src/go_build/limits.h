// Bounds of built modules, each with the reason for its number.
#pragma once

#include "base/limits.h"

#include <cstdint>

namespace hangar::limits {

// The largest module that the engine accepts (wasm/limits.h): a host would refuse a larger one.
inline constexpr std::uint64_t kBuiltModuleBytesMax = 256 * kMiB;

}  // namespace hangar::limits
