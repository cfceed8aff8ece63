// Divides the space of the cache directory between the kinds of files that the host keeps there.
#pragma once

#include "host/config.h"
#include "wasm/limits.h"

#include <cstdint>

namespace hangar::host {

// In bytes.
struct DiskShares {
  std::uint64_t modules = 0;           // Fetched modules.
  std::uint64_t code = 0;              // Compiled code.
  std::uint64_t waiting = 0;           // Modules that wait for a compiler.
  std::uint64_t compiling = 0;         // The code that one compiler may write.
  std::uint64_t snapshots = 0;         // Sleeping guests.
  std::uint64_t snapshots_of_one = 0;  // Snapshots of one namespace.
  std::uint64_t records = 0;           // Records of turns.
};

// The smallest module_cache_bytes that is allowed: room for the code of a module of 4 MB.
inline constexpr std::uint64_t kModuleCacheBytesMin = 32 * limits::kMiB;

// The shares of `config.module_cache_bytes`. A twentieth is left for the output of guests and for
// the file system itself. Without that setting each share is its limit (wasm/limits.h,
// modules/limits.h, recorder_bytes), which no share exceeds. Records in another directory have all
// of recorder_bytes.
[[nodiscard]] DiskShares disk_shares(const Config& config);

}  // namespace hangar::host
