// Units, and the bounds of the cluster and of the whole process, each with the reason for its
// number. All other bounds are in the limits.h of the folder that enforces them, in the same
// namespace, and each has the name of the thing that it bounds. A folder that hands data to another
// one asserts that their bounds agree (static_assert), where both are known.
#pragma once

#include <chrono>
#include <cstdint>

namespace hangar::limits {

inline constexpr std::uint64_t kKiB = std::uint64_t{1} << 10;
inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

// etcd refuses requests over 1.5 MiB, so a larger object can never have been stored.
inline constexpr std::uint64_t kObjectBytesMax = 3 * kMiB / 2;

// Graceful shutdown: work that has not finished after this time is abandoned, and the next leader
// repeats it.
inline constexpr std::chrono::seconds kShutdownMax{10};

}  // namespace hangar::limits
