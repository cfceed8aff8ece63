#include "wasm/snapshot/snapshot_store.h"

#include "base/limits.h"
#include "base/result.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "io/descriptor.h"
#include "io/test_full_disk.h"
#include "wasm/limits.h"
#include "wasm/snapshot/layer_file.h"
#include "wasm/snapshot/page_range.h"
#include "wasm/test_guests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hangar::wasm {
namespace {

std::vector<std::byte> bytes_of(std::size_t size, int seed) {
  std::vector<std::byte> bytes(size);
  for (std::size_t index = 0; index < size; ++index)
    bytes[index] = static_cast<std::byte>(index * 31 + static_cast<std::size_t>(seed));
  return bytes;
}

class SnapshotStoreTest : public ::testing::Test {
 protected:
  std::unique_ptr<SnapshotStore> open(SnapshotStore::Limits limits = {}) const {
    return SnapshotStore::open(directory_.path() / "store", limits).value();
  }
  static std::vector<std::byte> read(const SnapshotStore& store, SnapshotStore::Extent extent) {
    std::vector<std::byte> bytes(extent.size_bytes);
    EXPECT_TRUE(store.read(extent, bytes).has_value());
    return bytes;
  }

  TemporaryDirectory directory_;
};

TEST_F(SnapshotStoreTest, LeavesNothingInItsPrivateDirectory) {
  const auto store = open();
  const auto extent = store->write(bytes_of(100, 1)).value();
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path() / "store"));
  EXPECT_EQ(std::filesystem::status(directory_.path() / "store").permissions(),
            std::filesystem::perms::owner_all);
  store->free(extent);
}

TEST_F(SnapshotStoreTest, KeepsExtentsApart) {
  const auto store = open();
  std::vector<SnapshotStore::Extent> extents;
  for (int index = 0; index < 100; ++index) {
    extents.push_back(
        store->write(bytes_of(static_cast<std::size_t>(1 + index * 97), index)).value());
  }
  // Every third extent is freed for others of other sizes.
  for (std::size_t index = 0; index < extents.size(); index += 3) {
    store->free(extents[index]);
    extents[index] = store->write(bytes_of(5000 - index * 40, static_cast<int>(index))).value();
  }
  for (std::size_t index = 0; index < extents.size(); ++index) {
    EXPECT_EQ(read(*store, extents[index]),
              bytes_of(extents[index].size_bytes, static_cast<int>(index)));
    store->free(extents[index]);
  }
  EXPECT_EQ(store->live_bytes(), 0U);
}

TEST_F(SnapshotStoreTest, LeavesExtentsToAnotherStoreOfTheFile) {
  const budget::Tenant tenant = budget::Tenant::of_namespace("a");
  auto store = open();
  const auto first = store->write(bytes_of(3000, 1), tenant).value();
  const auto second = store->write(bytes_of(5000, 2), tenant).value();
  const auto third = store->write(bytes_of(700, 3), tenant).value();
  store->leave(first);
  store->free(second);
  store->leave(third);
  io::Descriptor file = store->leave_file().value();
  store.reset();

  store =
      SnapshotStore::open_again(directory_.path() / "store", {}, std::move(file), {third, first})
          .value();
  const auto again = store->adopt(first, tenant).value();
  EXPECT_EQ(read(*store, again), bytes_of(3000, 1));
  EXPECT_GT(store->accounts().held_bytes(tenant), 0U);
  // The room between the two is free, and so is what is discarded.
  const auto between = store->write(bytes_of(4000, 4), tenant).value();
  EXPECT_EQ(between.offset, second.offset);
  EXPECT_EQ(read(*store, again), bytes_of(3000, 1));
  store->discard(third);
  store->free(between);
  store->free(again);
  EXPECT_EQ(store->live_bytes(), 0U);
}

TEST_F(SnapshotStoreTest, RefusesExtentsThatItsFileCannotHave) {
  auto store = open();
  const auto one = store->write(bytes_of(3000, 1)).value();
  using Extents = std::vector<SnapshotStore::Extent>;
  const std::vector<Extents> refused = {
      {{.offset = one.offset, .size_bytes = 0}},
      {{.offset = one.offset + 1, .size_bytes = 1}},
      {{.offset = one.offset, .size_bytes = 1 << 30U}},
      {{.offset = ~std::uint64_t{255}, .size_bytes = 256}},
      {one, one},
      {{.offset = one.offset, .size_bytes = 300}, {.offset = one.offset + 256, .size_bytes = 1}}};
  for (const Extents& extents : refused) {
    const auto opened = SnapshotStore::open_again(directory_.path() / "store", {},
                                                  store->leave_file().value(), extents);
    ASSERT_FALSE(opened.has_value());
    EXPECT_EQ(opened.error().kind(), ErrorKind::Corrupt);
  }
  store->free(one);
}

TEST_F(SnapshotStoreTest, GivesBackWhatATenantHasNoRoomFor) {
  auto store = open();
  const auto one = store->write(bytes_of(3000, 1)).value();
  store->leave(one);
  io::Descriptor file = store->leave_file().value();
  store.reset();
  store = SnapshotStore::open_again(directory_.path() / "store", {.tenant_bytes_max = 1000},
                                    std::move(file), {one})
              .value();

  const auto adopted = store->adopt(one, budget::Tenant::of_namespace("a"));

  ASSERT_FALSE(adopted.has_value());
  EXPECT_EQ(adopted.error().kind(), ErrorKind::LimitExceeded);
  EXPECT_EQ(store->live_bytes(), 0U);
}

TEST_F(SnapshotStoreTest, LeavesLayerFilesWithWhatIsInThem) {
  const budget::Tenant tenant = budget::Tenant::of_namespace("a");
  const auto store = open();
  auto layer = store->make_layer_file(2, tenant).value();
  ASSERT_TRUE(layer->write_pages(1, bytes_of(kPageBytes, 5)).has_value());
  io::Descriptor file = std::move(*layer).leave();
  layer.reset();
  EXPECT_EQ(store->live_bytes(), 0U);

  io::Descriptor another(::dup(file.value()));
  EXPECT_FALSE(store->adopt_layer_file(std::move(another), 3, tenant).has_value()) << "of 2 pages";
  const auto again = store->adopt_layer_file(std::move(file), 2, tenant).value();

  std::vector<std::byte> page(kPageBytes);
  const io::Descriptor reader = again->open_for_reading().value();
  EXPECT_EQ(::pread(reader.value(), page.data(), page.size(), kPageBytes),
            static_cast<ssize_t>(kPageBytes));
  EXPECT_EQ(page, bytes_of(kPageBytes, 5));
}

TEST_F(SnapshotStoreTest, UsesTheRoomOfFreedExtentsAgain) {
  const auto store = open();
  const auto first = store->write(bytes_of(3000, 1)).value();
  const auto second = store->write(bytes_of(3000, 2)).value();
  const auto third = store->write(bytes_of(3000, 3)).value();
  store->free(first);
  store->free(second);
  const auto joined = store->write(bytes_of(6000, 4)).value();
  EXPECT_EQ(joined.offset, first.offset);
  EXPECT_EQ(read(*store, third), bytes_of(3000, 3));
  store->free(joined);
  store->free(third);
}

TEST_F(SnapshotStoreTest, OfATenantIsBoundedAndTakesNobodyElsesRoom) {
  const budget::Tenant greedy = budget::Tenant::of_namespace("greedy");
  const budget::Tenant modest = budget::Tenant::of_namespace("modest");
  const auto store = open({.file_bytes_max = 102'400, .tenant_bytes_max = 10'240});
  const auto first = store->write(bytes_of(8000, 1), greedy).value();

  const auto refused = store->write(bytes_of(4000, 2), greedy);
  const auto others = store->write(bytes_of(8000, 3), modest);

  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().kind(), ErrorKind::LimitExceeded);
  EXPECT_THAT(refused.error().message(), testing::HasSubstr("of its namespace"));
  ASSERT_TRUE(others.has_value()) << others.error().message();
  EXPECT_EQ(read(*store, *others), bytes_of(8000, 3));
  store->free(first);
  const auto again = store->write(bytes_of(4000, 2), greedy);
  ASSERT_TRUE(again.has_value()) << "what is freed is its own again";
  store->free(*again);
  store->free(*others);
}

TEST_F(SnapshotStoreTest, CountsWhatEachTenantHas) {
  const auto store = open();
  std::vector<SnapshotStore::Extent> extents;
  for (int round = 0; round < 3; ++round) {
    for (int tenant = 0; tenant < 5; ++tenant) {
      extents.push_back(
          store->write(bytes_of(256, round), budget::Tenant::of_namespace(std::to_string(tenant)))
              .value());
    }
    // A tenant without extents leaves no trace: its number is given to another tenant.
    store->free(extents.front());
    extents.erase(extents.begin());
  }

  EXPECT_EQ(store->accounts().held_bytes(budget::Tenant::of_namespace("0")), 512U);
  EXPECT_EQ(store->accounts().held_bytes(budget::Tenant::of_namespace("4")), 768U);
  for (const auto& extent : extents)
    store->free(extent);
  EXPECT_TRUE(store->accounts().holdings().empty());
}

TEST_F(SnapshotStoreTest, ANarrowerLimitSaysWhoSetIt) {
  const budget::Tenant tenant = budget::Tenant::of_namespace("narrowed");
  const auto store = open();
  store->accounts().limit_tenants(
      {.namespaces = {{"narrowed", {.bytes_max = 1024, .set_by = "TenantPolicy small"}}}});

  const auto refused = store->write(bytes_of(2000, 1), tenant);

  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message(), testing::HasSubstr("TenantPolicy small"));
}

TEST_F(SnapshotStoreTest, IsBounded) {
  const auto store = open({.file_bytes_max = 10'240});
  const auto extent = store->write(bytes_of(8000, 1)).value();
  const auto refused = store->write(bytes_of(4000, 2));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().kind(), ErrorKind::LimitExceeded);
  const auto small = store->write(bytes_of(2000, 3));
  ASSERT_TRUE(small.has_value());
  store->free(extent);
  store->free(*small);
  EXPECT_FALSE(store->write({}).has_value());
}

TEST_F(SnapshotStoreTest, KeepsWhatItHasWhenTheDiskTakesNoMoreAndGoesOnLater) {
  const auto store = open();
  const auto kept = store->write(bytes_of(3000, 1)).value();
  const std::uint64_t live = store->live_bytes();
  {
    const io::NoRoomForFiles full(16 * limits::kKiB);
    for (int attempt = 0; attempt < 3; ++attempt) {
      const auto refused = store->write(bytes_of(limits::kMiB, 2));
      ASSERT_FALSE(refused.has_value());
      EXPECT_EQ(refused.error().kind(), ErrorKind::Unavailable) << "it may be tried again";
    }
    EXPECT_EQ(store->live_bytes(), live) << "what was not written takes no room";
    EXPECT_EQ(read(*store, kept), bytes_of(3000, 1));
  }

  const auto later = store->write(bytes_of(limits::kMiB, 2)).value();
  EXPECT_EQ(read(*store, later), bytes_of(limits::kMiB, 2));
  EXPECT_EQ(read(*store, kept), bytes_of(3000, 1));
  store->free(kept);
  store->free(later);
}

TEST_F(SnapshotStoreTest, GoesOnWithoutItsDirectory) {
  const auto store = open();
  std::filesystem::remove_all(directory_.path() / "store");

  const auto extent = store->write(bytes_of(5000, 1)).value();

  EXPECT_EQ(read(*store, extent), bytes_of(5000, 1));
  store->free(extent);
}

TEST_F(SnapshotStoreTest, GivesFreedRoomBackToTheDisk) {
  const auto store = open();
  std::vector<SnapshotStore::Extent> extents;
  constexpr int kCount = 64;
  extents.reserve(kCount);
  for (int index = 0; index < kCount; ++index)
    extents.push_back(store->write(bytes_of(limits::kMiB / 4, index)).value());
  const std::uint64_t full = store->file_bytes();
  EXPECT_GE(full, 16 * limits::kMiB);
  for (int index = 0; index < kCount - 1; ++index)
    store->free(extents[static_cast<std::size_t>(index)]);
  EXPECT_LE(store->file_bytes(), full / 2) << "holes before the last one";
  EXPECT_EQ(read(*store, extents.back()), bytes_of(limits::kMiB / 4, kCount - 1));
  store->free(extents.back());
}

TEST_F(SnapshotStoreTest, IsForManyThreads) {
  const auto store = open();
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&store, thread] {
        for (int round = 0; round < 200; ++round) {
          const auto bytes =
              bytes_of(static_cast<std::size_t>(1 + (round * 37) % 3000), thread * 1000 + round);
          const auto extent = store->write(bytes).value();
          EXPECT_EQ(read(*store, extent), bytes);
          store->free(extent);
        }
      });
    }
  }
  EXPECT_EQ(store->live_bytes(), 0U);
}

TEST_F(SnapshotStoreTest, ADirectoryThatOthersMayWriteToIsRefused) {
  std::filesystem::create_directory(directory_.path() / "open");
  std::filesystem::permissions(directory_.path() / "open", std::filesystem::perms::all);
  const auto refused = SnapshotStore::open(directory_.path() / "open");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().kind(), ErrorKind::Denied);
}

}  // namespace
}  // namespace hangar::wasm
