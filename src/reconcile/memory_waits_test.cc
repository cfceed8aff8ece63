#include "reconcile/memory_waits.h"

#include "kube/object.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace hangar::reconcile {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

kube::ObjectKey key(std::string name, std::string namespace_ = "shop") {
  return {.namespace_ = std::move(namespace_), .name = std::move(name)};
}

MemoryWaits::HasRoom room_for(std::uint64_t room) {
  return
      [room](const std::string& /*namespace_name*/, std::uint64_t bytes) { return bytes <= room; };
}

TEST(MemoryWaits, LooksOnlyAtWhatHasRoomTogether) {
  MemoryWaits waits;
  waits.put(key("a"), {.bytes = 60});
  waits.put(key("b"), {.bytes = 60});
  waits.put(key("c"), {.bytes = 40});
  waits.put(key("x", "other"), {.bytes = 1});

  EXPECT_THAT(waits.with_room("shop", room_for(100)), ElementsAre(key("a"), key("c")));
  EXPECT_THAT(waits.with_room("shop", room_for(0)), IsEmpty());
  EXPECT_THAT(waits.with_room("sho", room_for(100)), IsEmpty());
}

TEST(MemoryWaits, LooksAtFewHoweverManyWaitAndAtEachInTurn) {
  constexpr std::size_t kObjects = 3 * MemoryWaits::kLooksMax;
  MemoryWaits waits;
  for (std::size_t index = 0; index < kObjects; ++index)
    waits.put(key(fmt::format("o{}", index)), {.bytes = 1});
  std::size_t looks = 0;
  const auto none = [&looks](const std::string& /*namespace_name*/, std::uint64_t /*bytes*/) {
    ++looks;
    return false;
  };
  EXPECT_THAT(waits.with_room("shop", none), IsEmpty());
  EXPECT_EQ(looks, MemoryWaits::kLooksMax);

  std::set<kube::ObjectKey> seen;
  for (int round = 0; round < 3; ++round) {
    const std::vector<kube::ObjectKey> keys = waits.with_room("shop", room_for(kObjects));
    seen.insert(keys.begin(), keys.end());
  }
  EXPECT_THAT(seen, SizeIs(kObjects));
}

TEST(MemoryWaits, LooksAtEachOnceEvenAfterTheLastOneIsGone) {
  MemoryWaits waits;
  waits.put(key("a"), {.bytes = 1});
  waits.put(key("b"), {.bytes = 1});
  EXPECT_THAT(waits.with_room("shop", room_for(9)), ElementsAre(key("a"), key("b")));

  waits.erase(key("b"));
  EXPECT_THAT(waits.with_room("shop", room_for(9)), ElementsAre(key("a")));
  waits.erase(key("a"));
  EXPECT_THAT(waits.with_room("shop", room_for(9)), IsEmpty());
  EXPECT_FALSE(waits.has_any("shop"));
}

}  // namespace
}  // namespace hangar::reconcile
