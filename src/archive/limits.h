// Bounds of copies in the cluster, each with the reason for its number.
#pragma once

#include <cstddef>

namespace hangar::limits {

// Namespaces whose copies are written at the same time, one copy of each. A writer holds a packed
// module in memory, up to 8 MiB. The API server limits the speed of writes, so more writers would
// not be faster; with fewer, one slow write would delay all namespaces.
inline constexpr std::size_t kArchiveWritersMax = 4;

// Copies of one namespace that wait to be written or removed. There are fewer reconciles that wait
// for them; further requests fail and are retried.
inline constexpr std::size_t kArchiveWaitingMax = 64;

// Objects of one copy, 1 MiB each: a packed flight in Go takes a few MiB.
inline constexpr std::size_t kCopyPartsMax = 8;

// Objects of all copies of one kind in a tenant's namespace, some 86 MiB in etcd. A definition of a
// few lines makes the host write them, so a quota on the size of a tenant's objects does not
// bound them.
inline constexpr std::size_t kCopyObjectsMax = 64;

}  // namespace hangar::limits
