#include "operators/fleet.h"

#include "budget/consumer.h"
#include "budget/equal_parts.h"
#include "operators/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
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

budget::Tenant tenant(const char* name) {
  return budget::Tenant::of_namespace(name);
}

TEST(ToLeaveEarly, AreThoseWhoHaveBeenIdleForAMomentUntilTheOthersFit) {
  const auto holder = [](std::uint64_t quarters, Duration idle_for) {
    return Resident{
        .bytes = quarters * limits::kStartedBytes / 4, .idle_since = kNow - idle_for, .cost = 1ms};
  };
  const Duration little = limits::kStartedIdle / 2;
  const Duration enough = limits::kStartedIdle;

  EXPECT_THAT(to_leave_early(std::vector{holder(2, enough), holder(2, enough)}, kNow), IsEmpty());
  EXPECT_THAT(
      to_leave_early(std::vector{holder(3, little), holder(1, enough), holder(2, enough)}, kNow),
      ElementsAre(2));
  EXPECT_THAT(to_leave_early(std::vector{holder(5, little)}, kNow), IsEmpty());
}

TEST(GuestsToEvict, AreTheLargestOfThoseWhoHoldMoreThanAnEqualPart) {
  // Three share 120, so the part of each is 40.
  EXPECT_THAT(guests_to_evict({.all_bytes = 120,
                               .held = {{tenant("much"), 80}, {tenant("some"), 40}},
                               .claims = {{tenant("late"), 30}}},
                              std::vector<Evictable>{{tenant("much"), 20},
                                                     {tenant("some"), 40},
                                                     {tenant("much"), 35},
                                                     {tenant("much"), 25}}),
              ElementsAre(2));
}

TEST(GuestsToEvict, LeaveNobodyLessThanTheEqualPartBeforeAnotherOne) {
  // Four share 80. One that holds 30 gives 15, and is then below the part.
  EXPECT_THAT(guests_to_evict({.all_bytes = 80,
                               .held = {{tenant("a"), 30}, {tenant("b"), 30}, {tenant("c"), 20}},
                               .claims = {{tenant("late"), 20}}},
                              std::vector<Evictable>{{tenant("a"), 15},
                                                     {tenant("a"), 15},
                                                     {tenant("b"), 10},
                                                     {tenant("b"), 20},
                                                     {tenant("c"), 20}}),
              ElementsAre(3));
  EXPECT_THAT(guests_to_evict(
                  {.all_bytes = 80,
                   .held = {{tenant("a"), 30}, {tenant("b"), 30}, {tenant("c"), 20}},
                   .claims = {{tenant("late"), 20}}},
                  std::vector<Evictable>{{tenant("a"), 15}, {tenant("a"), 15}, {tenant("b"), 10}}),
              ElementsAre(0, 2));
}

TEST(GuestsToEvict, AreNoneForATenantThatWouldHoldMoreThanItsPart) {
  EXPECT_THAT(guests_to_evict({.all_bytes = 100,
                               .held = {{tenant("a"), 60}, {tenant("b"), 40}},
                               .claims = {{tenant("b"), 11}}},
                              std::vector<Evictable>{{tenant("a"), 60}, {tenant("b"), 40}}),
              IsEmpty());
}

TEST(GuestsToEvict, MakeRoomForWhatTheHostNeedsToCompile) {
  const auto evicted_for = [](std::uint64_t claim) {
    return guests_to_evict(
        {.all_bytes = 80,
         .held = {{tenant("a"), 40}, {tenant("b"), 20}, {tenant("c"), 20}},
         .claims = {{budget::Tenant::host(), claim}}},
        std::vector<Evictable>{{tenant("a"), 15}, {tenant("a"), 25}, {tenant("b"), 20}});
  };
  EXPECT_THAT(evicted_for(10), ElementsAre(1));
  EXPECT_THAT(evicted_for(11), IsEmpty()) << "more than an eighth";
}

TEST(GuestsToEvict, AreNoneWhereEnoughIsFreeOrIsLeaving) {
  EXPECT_THAT(guests_to_evict(
                  {.all_bytes = 100, .held = {{tenant("a"), 80}}, .claims = {{tenant("b"), 20}}},
                  std::vector<Evictable>{{tenant("a"), 80}}),
              IsEmpty());
  EXPECT_THAT(guests_to_evict(
                  {.all_bytes = 100, .held = {{tenant("a"), 100}}, .claims = {{tenant("b"), 20}}},
                  std::vector<Evictable>{{tenant("a"), 20, true}, {tenant("a"), 80}}),
              IsEmpty());
  EXPECT_THAT(guests_to_evict({}, {}), IsEmpty());
}

TEST(GuestsToEvict, MakeRoomForEveryClaimWithinAnEqualPart) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 2000; ++round) {
    budget::Contest contest{.all_bytes = 1000};
    std::vector<Evictable> guests;
    std::uint64_t free = contest.all_bytes;
    while (free > 0) {
      const std::uint64_t bytes = std::min<std::uint64_t>(free, 1 + random() % 200);
      const budget::Tenant owner = tenant(std::to_string(random() % 6).c_str());
      guests.push_back({owner, bytes, random() % 8 == 0});
      contest.held[owner] += bytes;
      free -= bytes;
    }
    const std::uint64_t part = 1000 / (contest.held.size() + 1);
    contest.claims[tenant("late")] = 1 + random() % part;

    std::uint64_t coming = 0;
    for (const Evictable& guest : guests)
      if (guest.is_leaving) coming += guest.bytes;
    for (const std::size_t index : guests_to_evict(contest, guests))
      coming += guests[index].bytes;

    EXPECT_GE(coming, contest.claims.at(tenant("late")));
  }
}

}  // namespace
}  // namespace hangar::operators
