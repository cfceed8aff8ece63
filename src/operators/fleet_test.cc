#include "operators/fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <vector>

namespace hangar::operators {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr Instant kNow{1h};

TEST(LeastValuable, IsWhoHasBeenIdleForLongest) {
  const std::vector<Resident> residents = {{.bytes = 100, .idle_since = kNow - 1s, .cost = 1ms},
                                           {.bytes = 100, .idle_since = kNow - 9s, .cost = 1ms},
                                           {.bytes = 100, .idle_since = kNow - 5s, .cost = 1ms}};
  EXPECT_THAT(least_valuable(residents, 150, kNow), ElementsAre(1, 2));
}

TEST(LeastValuable, IsWhoHoldsMost) {
  const std::vector<Resident> residents = {{.bytes = 100, .idle_since = kNow - 1s, .cost = 1ms},
                                           {.bytes = 900, .idle_since = kNow - 1s, .cost = 1ms}};
  EXPECT_THAT(least_valuable(residents, 1, kNow), ElementsAre(1));
}

TEST(LeastValuable, IsWhoComesBackCheaply) {
  const std::vector<Resident> residents = {{.bytes = 100, .idle_since = kNow - 1s, .cost = 50ms},
                                           {.bytes = 100, .idle_since = kNow - 1s, .cost = 1ms}};
  EXPECT_THAT(least_valuable(residents, 1, kNow), ElementsAre(1));
}

TEST(LeastValuable, IsEverybodyWhenThatIsNotEnough) {
  const std::vector<Resident> residents = {{.bytes = 1, .idle_since = kNow - 1s, .cost = 0ms},
                                           {.bytes = 2, .idle_since = kNow - 1s, .cost = 0ms}};
  EXPECT_THAT(least_valuable(residents, 1000, kNow), ElementsAre(1, 0));
}

TEST(LeastValuable, IsNobodyWhenNothingIsNeeded) {
  const std::vector<Resident> residents = {{.bytes = 1, .idle_since = kNow, .cost = 0ms}};
  EXPECT_THAT(least_valuable(residents, 0, kNow), IsEmpty());
}

TEST(LeastValuable, KeepsAnOperatorThatIsAboutToWake) {
  const std::vector<Resident> residents = {
      {.bytes = 100,
       .idle_since = kNow - std::chrono::seconds(90),
       .next_wake = kNow + std::chrono::milliseconds(100)},
      {.bytes = 100, .idle_since = kNow - std::chrono::seconds(10)}};
  EXPECT_THAT(least_valuable(residents, 1, kNow), ElementsAre(1));
}

}  // namespace
}  // namespace hangar::operators
