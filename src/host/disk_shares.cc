#include "host/disk_shares.h"

#include "modules/limits.h"
#include "wasm/limits.h"

#include <algorithm>

namespace hangar::host {

namespace {

// A namespace that fills its part leaves room for others. On a small disk the operators of a
// machine may all be in one namespace.
std::uint64_t part_of_one(std::uint64_t snapshots) {
  constexpr std::uint64_t kEnough = 256 * limits::kMiB;
  return std::min(snapshots, std::max(snapshots / 4, kEnough));
}

}  // namespace

DiskShares disk_shares(const Config& config) {
  DiskShares shares{.modules = limits::kModuleStoreBytesMax,
                    .code = limits::kCodeCacheBytesMax,
                    .waiting = limits::kCompilationsWaitingBytesMax,
                    .compiling = limits::kCompiledBytesMax,
                    .snapshots = limits::kSnapshotBytesMax,
                    .snapshots_of_one = limits::kSnapshotBytesPerTenantMax,
                    .records = config.recorder_bytes};
  if (config.module_cache_bytes == 0) return shares;
  const std::uint64_t part = config.module_cache_bytes / 20;
  shares.modules = std::min(shares.modules, 2 * part);
  shares.code = std::min(shares.code, 6 * part);
  shares.waiting = std::min(shares.waiting, part);
  shares.compiling = std::min(shares.compiling, 6 * part);
  shares.snapshots = std::min(shares.snapshots, 3 * part);
  shares.snapshots_of_one = part_of_one(shares.snapshots);
  if (config.recorder_directory.empty()) shares.records = std::min(shares.records, part);
  return shares;
}

}  // namespace hangar::host
