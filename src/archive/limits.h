// Bounds of copies in the cluster, each with the reason for its number.
#pragma once

#include <cstddef>

namespace hangar::limits {

// Namespaces whose copies are written at the same time, one copy of each. A writer holds a packed
// module in memory: up to 8 MiB of a flight, 1 MiB of a machine. Writes are limited by the API
// server, so more writers would not be faster; fewer would let one slow write hold up everybody.
inline constexpr std::size_t kArchiveWritersMax = 4;

// Copies of one namespace that wait to be written or removed. Its reconciles, which wait for them,
// are fewer; beyond that, they are tried again.
inline constexpr std::size_t kArchiveWaitingMax = 64;

}  // namespace hangar::limits
