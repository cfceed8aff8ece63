#include "foresight/leaders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <vector>

namespace hangar::foresight {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr Instant kStart{1h};

TEST(Leaders, TellsAWakeToThoseWhoFollow) {
  Leaders leaders;
  const OperatorId leader = leaders.join("team");
  const OperatorId follower = leaders.join("team");
  leaders.follow(follower, leader);
  EXPECT_THAT(leaders.on_wake(leader, kStart), ElementsAre(follower));
  EXPECT_THAT(leaders.on_wake(follower, kStart), IsEmpty());
  leaders.follow(follower, 0);
  EXPECT_THAT(leaders.on_wake(leader, kStart), IsEmpty());
}

TEST(Leaders, LetsNobodyFollowAnotherNamespace) {
  Leaders leaders;
  const OperatorId ours = leaders.join("ours");
  const OperatorId theirs = leaders.join("theirs");
  leaders.follow(ours, theirs);
  EXPECT_THAT(leaders.on_wake(theirs, kStart), IsEmpty());
  EXPECT_TRUE(leaders.recent(ours).empty());
}

TEST(Leaders, RemembersTheLastWakesOfOthersTheLatestFirst) {
  Leaders leaders;
  std::vector<OperatorId> ids;
  for (std::size_t count = 0; count < 2 * Leaders::kRecentMax; ++count)
    ids.push_back(leaders.join("team"));
  for (const OperatorId id : ids)
    static_cast<void>(leaders.on_wake(id, kStart));
  const auto recent = leaders.recent(ids.back());
  ASSERT_EQ(recent.size(), Leaders::kRecentMax - 1);
  EXPECT_EQ(recent.front().id, ids[ids.size() - 2]);
}

TEST(Leaders, HasABoundOfFollowers) {
  Leaders leaders;
  const OperatorId leader = leaders.join("team");
  for (std::size_t count = 0; count <= Leaders::kFollowersMax; ++count)
    leaders.follow(leaders.join("team"), leader);
  EXPECT_EQ(leaders.on_wake(leader, kStart).size(), Leaders::kFollowersMax);
}

TEST(Leaders, ForgetsWhoHasLeft) {
  Leaders leaders;
  const OperatorId leader = leaders.join("team");
  const OperatorId follower = leaders.join("team");
  leaders.follow(follower, leader);
  static_cast<void>(leaders.on_wake(leader, kStart));
  leaders.leave(leader);
  EXPECT_TRUE(leaders.recent(follower).empty());
  leaders.follow(follower, leader);
  leaders.leave(follower);
  leaders.leave(follower);
  EXPECT_THAT(leaders.on_wake(follower, kStart), IsEmpty());
}

}  // namespace
}  // namespace hangar::foresight
