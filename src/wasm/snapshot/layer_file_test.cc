#include "wasm/snapshot/layer_file.h"

#include "base/limits.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "io/descriptor.h"
#include "io/loop.h"
#include "io/test_full_disk.h"
#include "wasm/limits.h"
#include "wasm/snapshot/page_range.h"
#include "wasm/snapshot/snapshot_store.h"
#include "wasm/test_guests.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <latch>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace hangar::wasm {
namespace {

class LayerFileTest : public ::testing::Test {
 protected:
  std::unique_ptr<LayerFile> make(std::uint32_t pages) {
    auto file = store_->make_layer_file(pages, tenant_);
    EXPECT_TRUE(file.has_value()) << file.error().message();
    return file ? *std::move(file) : nullptr;
  }
  void expect_no_room(std::uint32_t pages) {
    const auto file = store_->make_layer_file(pages, tenant_);
    ASSERT_FALSE(file.has_value());
    EXPECT_EQ(file.error().kind(), ErrorKind::LimitExceeded);
  }

  TemporaryDirectory directory_;
  std::unique_ptr<SnapshotStore> store_ =
      SnapshotStore::open(directory_.path() / "store", {.file_bytes_max = 32 * limits::kMiB,
                                                        .tenant_bytes_max = 16 * limits::kMiB})
          .value();
  const budget::Tenant tenant_ = budget::Tenant::of_namespace("a");
};

TEST_F(LayerFileTest, CanBeReadAndNotWrittenByWhoGetsIt) {
  const auto file = make(3);
  const std::vector<std::byte> page(kPageBytes, std::byte{7});
  ASSERT_TRUE(file->write_pages(1, page).has_value());

  const io::Descriptor handed = file->open_for_reading().value();

  std::array<std::byte, 2> read{};
  EXPECT_EQ(::pread(handed.value(), read.data(), read.size(), kPageBytes - 1), 2);
  EXPECT_EQ(read, (std::array{std::byte{0}, std::byte{7}}));
  EXPECT_LT(::pwrite(handed.value(), page.data(), page.size(), 0), 0);
  EXPECT_LT(::ftruncate(handed.value(), 0), 0);
  EXPECT_EQ(::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, handed.value(), 0),
            MAP_FAILED);
}

TEST_F(LayerFileTest, TakesNoRoomAfterItsEndWhoeverStillHasIt) {
  auto file = make(16);
  ASSERT_TRUE(file->write_pages(0, std::vector<std::byte>(16 * kPageBytes, std::byte{7})));
  const io::Descriptor handed = file->open_for_reading().value();

  file.reset();

  struct stat status{};
  ASSERT_EQ(::fstat(handed.value(), &status), 0);
  EXPECT_EQ(status.st_size, 0);
  EXPECT_EQ(status.st_blocks, 0);
}

TEST_F(LayerFileTest, LeavesThePageCacheOnceItIsIdle) {
  const auto written_again = make(3);
  auto idle = make(3);
  const Instant later = io::Loop::now() + std::chrono::nanoseconds(1);
  while (io::Loop::now() < later)
    std::this_thread::yield();
  ASSERT_TRUE(written_again->write_pages(0, std::vector<std::byte>(kPageBytes)).has_value());

  // The file of all snapshots is one of them.
  EXPECT_EQ(store_->drop_page_cache(later), 2U);
  EXPECT_EQ(store_->drop_page_cache(Instant::max()), 3U);
  idle.reset();
  EXPECT_EQ(store_->drop_page_cache(Instant::max()), 2U);
}

TEST_F(LayerFileTest, CountsAsItsTenantsAndTakesAtMostHalfOfItsShare) {
  const std::uint64_t before = store_->file_bytes();
  auto file = make(1500);
  EXPECT_EQ(store_->accounts().held_bytes(tenant_), 1500 * kPageBytes);
  EXPECT_EQ(store_->live_bytes(), 1500 * kPageBytes);
  EXPECT_EQ(store_->file_bytes(), before + 1500 * kPageBytes);
  EXPECT_EQ(store_->layer_file_pages_max(tenant_), 2048U - 1500U);
  expect_no_room(2048 - 1500 + 1);

  file.reset();

  EXPECT_EQ(store_->live_bytes(), 0U);
  EXPECT_EQ(store_->layer_file_pages_max(tenant_), 2048U);
}

TEST_F(LayerFileTest, HasASize) {
  expect_no_room(0);
  expect_no_room(limits::kLayerBytesMax / kPageBytes + 1);
}

TEST_F(LayerFileTest, IsOneOfFew) {
  std::vector<std::unique_ptr<LayerFile>> files;
  while (store_->layer_file_pages_max(tenant_) > 0) {
    files.push_back(make(1));
    ASSERT_LE(files.size(), limits::kLayerFilesMax);
  }

  expect_no_room(1);
  files.pop_back();
  EXPECT_NE(make(1), nullptr);
}

TEST_F(LayerFileTest, IsOneOfFewAlsoWhenThreadsMakeThemAtTheSameTime) {
  std::vector<std::unique_ptr<LayerFile>> files;
  while (store_->layer_file_pages_max(tenant_) > 0)
    files.push_back(make(1));
  constexpr std::size_t kThreads = 8;
  for (int round = 0; round < 100; ++round) {
    files.pop_back();  // There is room for one.
    std::latch begin(kThreads);
    std::vector<std::unique_ptr<LayerFile>> made(kThreads);
    {
      std::vector<std::jthread> threads;
      for (std::unique_ptr<LayerFile>& one : made) {
        threads.emplace_back([this, &begin, &one] {
          begin.arrive_and_wait();
          if (auto file = store_->make_layer_file(1, tenant_)) one = *std::move(file);
        });
      }
    }
    std::erase(made, nullptr);
    ASSERT_EQ(made.size(), 1U) << round;
    files.push_back(std::move(made.front()));
  }
}

TEST_F(LayerFileTest, CountsNotIfItCannotBeMade) {
  const io::NoRoomForFiles full(kPageBytes);

  const auto file = store_->make_layer_file(2, tenant_);

  ASSERT_FALSE(file.has_value());
  EXPECT_EQ(file.error().kind(), ErrorKind::Unavailable);
  EXPECT_EQ(store_->live_bytes(), 0U);
}

}  // namespace
}  // namespace hangar::wasm
