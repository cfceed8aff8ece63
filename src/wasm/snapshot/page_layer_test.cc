#include "wasm/snapshot/page_layer.h"

#include "base/result.h"
#include "budget/consumer.h"
#include "wasm/limits.h"
#include "wasm/snapshot/page_range.h"
#include "wasm/snapshot/snapshot_store.h"
#include "wasm/test_guests.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>

namespace hangar::wasm {
namespace {

using std::chrono::minutes;

TEST(InFewPieces, MergesAcrossTheSmallestGaps) {
  EXPECT_EQ(in_few_pieces({}, 2), PageRanges{});
  const PageRanges pages = {{0, 1}, {16, 1}, {40, 2}, {100, 1}, {300, 1}};
  EXPECT_EQ(in_few_pieces(pages, 8), (PageRanges{{0, 17}, {40, 2}, {100, 1}, {300, 1}}));
  EXPECT_EQ(in_few_pieces(pages, 3), (PageRanges{{0, 42}, {100, 1}, {300, 1}}));
  EXPECT_EQ(in_few_pieces(pages, 1), (PageRanges{{0, 301}}));
}

TEST(Without, KeepsThePagesBesideTheOthers) {
  const PageRanges written = {{0, 1}, {8, 4}, {15, 1}, {18, 45}, {69, 2}, {99, 1}};
  EXPECT_EQ(without(written, PageRanges{{10, 10}, {60, 10}}),
            (PageRanges{{0, 1}, {8, 2}, {20, 40}, {70, 1}, {99, 1}}));
  EXPECT_EQ(without(written, PageRanges()), written);
  EXPECT_EQ(without(written, PageRanges{{0, 100}}), PageRanges());
  EXPECT_EQ(without(PageRanges(), written), PageRanges());
}

TEST(LayerPays, ForAGuestThatWakesOftenAndIsLarge) {
  constexpr std::uint64_t kLarge = limits::kLayerBytesMin / kPageBytes;
  EXPECT_FALSE(PageLayer::pays(std::nullopt, kLarge)) << "it has never woken";
  EXPECT_TRUE(PageLayer::pays(Duration::zero(), kLarge));
  EXPECT_TRUE(PageLayer::pays(limits::kLayerSleepMax, kLarge));
  EXPECT_FALSE(PageLayer::pays(limits::kLayerSleepMax + minutes(1), kLarge));
  EXPECT_FALSE(PageLayer::pays(Duration::zero(), kLarge - 1));
}

// Memory of a guest: pages that can be mapped over.
class Pages {
 public:
  explicit Pages(std::uint32_t count) : size_(std::size_t{count} * kPageBytes) {
    void* const address =
        ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(address, MAP_FAILED);
    bytes_ = static_cast<std::byte*>(address);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() { ::munmap(bytes_, size_); }

  [[nodiscard]] std::span<std::byte> bytes() const { return {bytes_, size_}; }
  void fill(std::uint32_t page, int value) const {
    std::memset(bytes_ + std::size_t{page} * kPageBytes, value, kPageBytes);
  }
  // The value of all bytes of a page; -1 if they differ.
  [[nodiscard]] int value(std::uint32_t page) const {
    const auto bytes_of = bytes().subspan(std::size_t{page} * kPageBytes, kPageBytes);
    for (const std::byte byte : bytes_of) {
      if (byte != bytes_of.front()) return -1;
    }
    return std::to_integer<int>(bytes_of.front());
  }

 private:
  std::size_t size_;
  std::byte* bytes_ = nullptr;
};

class PageLayerTest : public ::testing::Test {
 protected:
  Result<std::unique_ptr<PageLayer>> make(const Pages& memory, const PageRanges& pages) {
    return PageLayer::make(*store_, tenant_, memory.bytes(), pages);
  }

  TemporaryDirectory directory_;
  std::unique_ptr<SnapshotStore> store_ =
      SnapshotStore::open(directory_.path() / "store", {.file_bytes_max = 32 * limits::kMiB,
                                                        .tenant_bytes_max = 16 * limits::kMiB})
          .value();
  budget::Tenant tenant_ = budget::Tenant::of_namespace("a");
};

TEST_F(PageLayerTest, ShowsWhatItWasMadeOfAndNothingElse) {
  const Pages memory(100);
  for (std::uint32_t page = 0; page < 100; ++page)
    memory.fill(page, static_cast<int>(page) + 1);
  // Another extent of an odd size: the pages of the layer are aligned, its extent is not.
  const auto other = store_->write(std::span<const std::byte>(memory.bytes()).first(300), tenant_);
  const auto layer = make(memory, {{3, 2}, {6, 1}, {70, 30}}).value();
  EXPECT_EQ(PageRanges(layer->pages().begin(), layer->pages().end()),
            (PageRanges{{3, 4}, {70, 30}}));

  const Pages shown(100);
  shown.fill(6, 200);
  shown.fill(7, 201);
  ASSERT_TRUE(layer->map_into(shown.bytes()).has_value());
  for (std::uint32_t page = 0; page < 100; ++page) {
    const bool is_in_it = (page >= 3 && page < 7) || page >= 70;
    EXPECT_EQ(shown.value(page), page == 7 ? 201 : is_in_it ? static_cast<int>(page) + 1 : 0);
  }
  EXPECT_FALSE(layer->map_into(shown.bytes().first(99 * kPageBytes)).has_value());
  store_->free(*other);
}

TEST_F(PageLayerTest, KeepsWhatIsWrittenInside) {
  const Pages memory(100);
  const auto layer = make(memory, {{10, 10}, {60, 10}}).value();
  const Pages shown(100);
  ASSERT_TRUE(layer->map_into(shown.bytes()).has_value());
  const PageRanges written = {{0, 1}, {8, 4}, {15, 1}, {18, 45}, {69, 2}, {99, 1}};
  for (const PageRange& range : written) {
    for (std::uint32_t page = range.first; page < range.end(); ++page)
      shown.fill(page, static_cast<int>(page) + 1);
  }
  ASSERT_TRUE(layer->update(shown.bytes(), written).has_value());

  const Pages again(100);
  ASSERT_TRUE(layer->map_into(again.bytes()).has_value());
  for (const std::uint32_t page : {10U, 11U, 15U, 18U, 19U, 60U, 62U, 69U})
    EXPECT_EQ(again.value(page), static_cast<int>(page) + 1);
  for (const std::uint32_t page : {0U, 9U, 12U, 20U, 59U, 63U, 68U, 70U, 99U})
    EXPECT_EQ(again.value(page), 0) << page;
}

TEST_F(PageLayerTest, WritesOfTheGuestStayInItsMemory) {
  const Pages memory(10);
  memory.fill(1, 7);
  const auto layer = make(memory, {{1, 1}}).value();
  const Pages first(10);
  ASSERT_TRUE(layer->map_into(first.bytes()).has_value());
  first.fill(1, 8);
  const Pages second(10);
  ASSERT_TRUE(layer->map_into(second.bytes()).has_value());
  EXPECT_EQ(second.value(1), 7);
}

TEST_F(PageLayerTest, TakesAtMostHalfOfWhatItsTenantMayStore) {
  const Pages memory(2048);
  auto layer = make(memory, {{0, 1500}});
  ASSERT_TRUE(layer.has_value()) << layer.error().message();
  EXPECT_EQ(store_->accounts().held_bytes(tenant_), store_->live_bytes());
  const auto second = make(memory, {{0, 1500}});
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().kind(), ErrorKind::LimitExceeded);
  *layer = nullptr;
  EXPECT_EQ(store_->live_bytes(), 0U);
  EXPECT_TRUE(make(memory, {{0, 1500}}).has_value());
}

TEST_F(PageLayerTest, HasASize) {
  const Pages memory(4096);
  EXPECT_FALSE(make(memory, {}).has_value());
  const auto layer = make(memory, {{0, 2049}});
  ASSERT_FALSE(layer.has_value());
  EXPECT_EQ(layer.error().kind(), ErrorKind::LimitExceeded);
  EXPECT_EQ(store_->live_bytes(), 0U);
}

}  // namespace
}  // namespace hangar::wasm
