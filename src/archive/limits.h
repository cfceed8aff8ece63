// Bounds of copies in the cluster, each with the reason for its number.
#pragma once

#include <cstddef>

namespace hangar::limits {

// Namespaces whose copies are written at the same time, one copy of each. A writer holds a packed
// module in memory, up to 8 MiB. Writes are limited by the API server, so more writers would not be
// faster; fewer would let one slow write hold up everybody.
inline constexpr std::size_t kArchiveWritersMax = 4;

// Copies of one namespace that wait to be written or removed. Its reconciles, which wait for them,
// are fewer; beyond that, they are tried again.
inline constexpr std::size_t kArchiveWaitingMax = 64;

// Objects of one copy, 1 MiB each: a packed flight in Go takes a few MiB.
inline constexpr std::size_t kCopyPartsMax = 8;

// Objects of all copies of one kind in a tenant's namespace, some 86 MiB in etcd. A definition of a
// few lines makes the host write them, so that the size of what a tenant may create does not bound
// them.
inline constexpr std::size_t kCopyObjectsMax = 64;

}  // namespace hangar::limits
