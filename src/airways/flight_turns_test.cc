#include "airways/flight_turns.h"

#include "kube/object.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace hangar::airways {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

kube::ObjectKey in(const std::string& namespace_, int number = 0) {
  return {.namespace_ = namespace_, .name = "f" + std::to_string(number)};
}

// How many of its Flights begin at once.
std::size_t begun(FlightTurns& turns, const std::string& namespace_, int count) {
  std::size_t begun = 0;
  for (int i = 0; i < count; ++i)
    begun += turns.begin(in(namespace_, i)) ? 1 : 0;
  return begun;
}

TEST(FlightTurns, ANamespaceHoldsNoMorePlacesThanItLeavesFree) {
  FlightTurns turns(16);

  EXPECT_EQ(begun(turns, "a", 100), 8U);
  EXPECT_EQ(begun(turns, "b", 100), 4U);
  EXPECT_TRUE(turns.begin(in("victim"))) << "one that had nothing to do begins at once";
}

TEST(FlightTurns, OnePlaceIsUsedByOneAfterTheOther) {
  FlightTurns turns(1);

  EXPECT_TRUE(turns.begin(in("a")));
  EXPECT_FALSE(turns.begin(in("b")));
  EXPECT_THAT(turns.end("a"), ElementsAre(in("b")));
  EXPECT_TRUE(turns.begin(in("b")));
}

TEST(FlightTurns, WhatWaitsIsNamedOnceThereIsRoomAndOnlyOnce) {
  FlightTurns turns(2);
  ASSERT_EQ(begun(turns, "a", 3), 1U);
  EXPECT_FALSE(turns.begin(in("a", 1))) << "asked twice, it waits once";

  EXPECT_THAT(turns.end("a"), ElementsAre(in("a", 1)));
  ASSERT_TRUE(turns.begin(in("a", 1)));
  EXPECT_THAT(turns.end("a"), ElementsAre(in("a", 2)));
  ASSERT_TRUE(turns.begin(in("a", 2)));
  EXPECT_THAT(turns.end("a"), IsEmpty());
}

TEST(FlightTurns, NamespacesThatWaitTakeTurns) {
  FlightTurns turns(2);
  ASSERT_TRUE(turns.begin(in("x")));
  ASSERT_EQ(begun(turns, "a", 1), 1U);
  ASSERT_EQ(begun(turns, "a", 3) + begun(turns, "b", 2), 0U);

  const auto next = [&turns](const std::string& done) {
    const std::vector<kube::ObjectKey> next = turns.end(done);
    for (const kube::ObjectKey& one : next)
      EXPECT_TRUE(turns.begin(one));
    return next;
  };
  EXPECT_THAT(next("a"), ElementsAre(in("a", 0)));
  EXPECT_THAT(next("a"), ElementsAre(in("b", 0)));
  EXPECT_THAT(next("b"), ElementsAre(in("a", 1)));
  EXPECT_THAT(next("a"), ElementsAre(in("b", 1)));
}

TEST(FlightTurns, WhatIsForgottenIsNotNamed) {
  FlightTurns turns(1);
  ASSERT_TRUE(turns.begin(in("a")));
  ASSERT_FALSE(turns.begin(in("b")));

  turns.forget(in("b"));

  EXPECT_THAT(turns.end("a"), IsEmpty());
}

// Whatever happens: all that waits is worked on in the end, and no place is lost.
TEST(FlightTurns, NothingWaitsForEver) {
  std::mt19937 dice(7);
  const auto roll = [&dice](int sides) {
    return std::uniform_int_distribution<int>(0, sides - 1)(dice);
  };
  for (int round = 0; round < 200; ++round) {
    FlightTurns turns(static_cast<std::size_t>(roll(6) + 1));
    std::vector<kube::ObjectKey> running;
    std::map<kube::ObjectKey, bool> served;
    const auto begin = [&](const kube::ObjectKey& key) {
      if (!turns.begin(key)) return;
      running.push_back(key);
      served[key] = true;
    };
    const auto end = [&](std::size_t index) {
      const kube::ObjectKey done = running[index];
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(index));
      for (const kube::ObjectKey& next : turns.end(done.namespace_))
        begin(next);
    };
    for (int step = 0; step < 40; ++step) {
      if (running.empty() || roll(3) != 0) {
        const kube::ObjectKey key = in(std::string(1, static_cast<char>('a' + roll(4))), step);
        served[key] = false;
        begin(key);
      } else {
        end(static_cast<std::size_t>(roll(static_cast<int>(running.size()))));
      }
    }
    while (!running.empty())
      end(0);
    for (const auto& [key, is_served] : served)
      EXPECT_TRUE(is_served) << key.to_string() << " in round " << round;
  }
}

}  // namespace
}  // namespace hangar::airways
