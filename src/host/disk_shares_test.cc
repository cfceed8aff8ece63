#include "host/disk_shares.h"

#include "host/config.h"
#include "modules/limits.h"
#include "wasm/limits.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace hangar::host {
namespace {

constexpr std::uint64_t kGiB = 1024 * limits::kMiB;

TEST(DiskShares, AreTheLimitsWithoutASize) {
  const DiskShares shares = disk_shares({});
  EXPECT_EQ(shares.modules, limits::kModuleStoreBytesMax);
  EXPECT_EQ(shares.code, limits::kCodeCacheBytesMax);
  EXPECT_EQ(shares.waiting, limits::kCompilationsWaitingBytesMax);
  EXPECT_EQ(shares.compiling, limits::kCompiledBytesMax);
  EXPECT_EQ(shares.snapshots, limits::kSnapshotBytesMax);
}

TEST(DiskShares, FitTogetherIntoTheSize) {
  for (const std::uint64_t size : {kModuleCacheBytesMin, kGiB, 4 * kGiB, 512 * kGiB}) {
    const DiskShares shares = disk_shares({.module_cache_bytes = size});
    EXPECT_GT(shares.modules, 0U);
    EXPECT_LT(shares.modules + shares.code + shares.waiting + shares.compiling + shares.snapshots +
                  shares.records,
              size);
    EXPECT_LE(shares.code, limits::kCodeCacheBytesMax);
    EXPECT_LE(shares.snapshots, limits::kSnapshotBytesMax);
  }
}

TEST(DiskShares, LetOneNamespaceHaveAQuarterOfTheSleepersWhereThereIsRoom) {
  const auto of_one = [](std::uint64_t size) {
    const DiskShares shares = disk_shares({.module_cache_bytes = size});
    return static_cast<double>(shares.snapshots_of_one) / static_cast<double>(shares.snapshots);
  };
  EXPECT_DOUBLE_EQ(of_one(kGiB), 1);
  EXPECT_GT(of_one(2 * kGiB), 0.8);
  EXPECT_DOUBLE_EQ(of_one(20 * kGiB), 0.25);
}

TEST(DiskShares, LeaveRecordsElsewhereAlone) {
  const Config beside{.recorder_bytes = kGiB, .module_cache_bytes = 4 * kGiB};
  Config elsewhere = beside;
  elsewhere.recorder_directory = "/records";
  EXPECT_EQ(disk_shares(beside).records, 4 * kGiB / 20);
  EXPECT_EQ(disk_shares(elsewhere).records, kGiB);
}

}  // namespace
}  // namespace hangar::host
