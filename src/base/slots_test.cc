#include "base/slots.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HANGAR_TEST_SLOTS_ARE_ALLOCATIONS 1
#else
#define HANGAR_TEST_SLOTS_ARE_ALLOCATIONS 0
#endif

namespace hangar {
namespace {

constexpr std::size_t kLargest = 8192;

TEST(Slots, HaveTheSizeThatWasAskedForAndLittleMore) {
  for (std::size_t size = 1; size <= kLargest; ++size) {
    const std::size_t slot = slots::slot_size(size);
    ASSERT_GE(slot, size);
    ASSERT_LE(slot - size, size < 256 ? 15 : size < 2048 ? 63 : 255);
  }
  EXPECT_EQ(slots::slot_size(kLargest + 1), kLargest + 1) << "the heap's own";
}

// No two slots share a byte, in whatever order they are taken and freed.
TEST(Slots, KeepWhatIsWrittenToThem) {
  const auto seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  struct Taken {
    unsigned char* at;
    std::size_t size;
    unsigned char mark;
  };
  std::vector<Taken> taken;
  const auto give_back = [&](std::size_t index) {
    const Taken slot = std::exchange(taken[index], taken.back());
    taken.pop_back();
    for (std::size_t at = 0; at < slot.size; ++at)
      ASSERT_EQ(slot.at[at], slot.mark) << "byte " << at << " of " << slot.size;
    slots::give_back(slot.at, slot.size);
  };
  for (int round = 0; round < 20'000; ++round) {
    // For a while more slots are taken than freed, then the other way round.
    const bool grows = round / 4000 % 2 == 0;
    if (taken.empty() || random() % 3 < (grows ? 2U : 1U)) {
      const std::size_t size = 1 + random() % (kLargest + 100);
      auto* const at = static_cast<unsigned char*>(slots::take(size));
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(at) % alignof(std::max_align_t), 0);
      const auto mark = static_cast<unsigned char>(random());
      std::memset(at, mark, size);
      taken.push_back({.at = at, .size = size, .mark = mark});
    } else {
      give_back(random() % taken.size());
      if (HasFatalFailure()) return;
    }
  }
  while (!taken.empty() && !HasFatalFailure())
    give_back(taken.size() - 1);
}

TEST(Slots, ServeContainersAndSharedPointers) {
  using Map = std::map<int, int, std::less<>, slots::Allocator<std::pair<const int, int>>>;
  const auto map = std::allocate_shared<Map>(slots::Allocator<Map>());
  for (int index = 0; index < 1000; ++index)
    (*map)[index] = index;
  EXPECT_EQ(map->size(), 1000U);
  EXPECT_EQ(map->at(999), 999);
}

TEST(Slots, AreForAnyThread) {
  std::vector<std::vector<std::pair<void*, std::size_t>>> taken(4);
  {
    std::vector<std::jthread> threads;
    for (auto& own : taken) {
      threads.emplace_back([&own] {
        for (std::size_t index = 0; index < 5000; ++index) {
          const std::size_t size = 16 + index % 50 * 16;
          own.emplace_back(slots::take(size), size);
          if (index % 3 == 0) {
            slots::give_back(own.back().first, own.back().second);
            own.pop_back();
          }
        }
      });
    }
  }
  // Another thread frees them than the one that took them.
  for (const auto& own : taken)
    for (const auto& [at, size] : own)
      slots::give_back(at, size);
}

#if !HANGAR_TEST_SLOTS_ARE_ALLOCATIONS
TEST(Slots, LieCloseTogether) {
  constexpr std::size_t kSize = 1000;
  constexpr std::size_t kCount = 10'000;
  const std::size_t before = slots::slab_bytes();
  std::vector<void*> taken;
  for (std::size_t index = 0; index < kCount; ++index)
    taken.push_back(slots::take(kSize));

  EXPECT_LT(slots::slab_bytes() - before, kCount * kSize * 11 / 10);

  for (void* const slot : taken)
    slots::give_back(slot, kSize);
}

TEST(Slots, LeaveNoSlabBehindWhenTheyMoveToAnotherSize) {
  constexpr std::size_t kCount = 10'000;
  const std::size_t before = slots::slab_bytes();
  std::vector<void*> taken;
  for (std::size_t index = 0; index < kCount; ++index)
    taken.push_back(slots::take(1000));
  const std::size_t full = slots::slab_bytes() - before;

  // Like objects whose status grows: each is replaced by a larger one.
  for (void*& slot : taken) {
    void* const larger = slots::take(1020);
    slots::give_back(std::exchange(slot, larger), 1000);
  }
  std::size_t moved = slots::slab_bytes() - before;
  EXPECT_LT(moved, full * 11 / 10) << "of " << full;

  for (void*& slot : taken) {
    void* const larger = slots::take(1100);
    slots::give_back(std::exchange(slot, larger), 1020);
  }
  moved = slots::slab_bytes() - before;
  EXPECT_LT(moved, full * 12 / 10) << "of " << full;

  for (void* const slot : taken)
    slots::give_back(slot, 1100);
  EXPECT_LE(slots::slab_bytes() - before, 3 * (std::size_t{64} << 10U))
      << "the last slab of a size stays";
}
#endif

}  // namespace
}  // namespace hangar
