#include "airways/life.h"

#include "airways/resource_ref.h"
#include "base/time.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <optional>

namespace hangar::airways {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using Act = Life::Act;

constexpr Instant kNow = Instant(std::chrono::hours(1));
const ResourceRef kSecret{
    .kind = {.group = "", .kind = "Secret"}, .namespace_ = "team", .name = "token"};
const Life::Facts kAlive{.has_flight = true};

bool news(const ResourceRef& /*resource*/) {
  return true;
}
bool no_news(const ResourceRef& /*resource*/) {
  return false;
}

Life::ReleaseWait stage(std::size_t step, Duration patience) {
  return {.step = step, .patience = patience};
}

// An instance whose flight has run, and whose release is ready.
Life settled() {
  Life life;
  EXPECT_EQ(life.begin(kAlive, no_news, kNow), Act::Evaluate);
  life.on_released();
  life.on_settled(true);
  life.on_evaluated(Duration(0), kNow);
  return life;
}

TEST(AirwayLife, BeginsWithAnEvaluation) {
  Life life;
  EXPECT_EQ(life.begin(kAlive, no_news, kNow), Act::Evaluate);
}

TEST(AirwayLife, DoesNothingWithoutAFlightAndKeepsItsReason) {
  Life life;
  EXPECT_EQ(life.begin({}, no_news, kNow), Act::Nothing);
  EXPECT_FALSE(life.on_child(false)) << "nothing follows from its children";
  EXPECT_EQ(life.begin(kAlive, no_news, kNow), Act::Evaluate);
}

TEST(AirwayLife, TellsWhatAnEvaluationIsDueForBesidesChanges) {
  Life life;
  EXPECT_TRUE(life.has_changes());
  EXPECT_EQ(life.begin(kAlive, no_news, kNow), Act::Evaluate);
  EXPECT_EQ(life.due(), Life::Due::Nothing);
  EXPECT_FALSE(life.has_changes());
  life.on_failed();
  EXPECT_EQ(life.begin(kAlive, no_news, kNow), Act::Evaluate);
  EXPECT_EQ(life.due(), Life::Due::Retry);
  EXPECT_TRUE(life.on_release_waits(stage(1, minutes(5)), kNow));
  life.on_evaluated(minutes(1), kNow);
  EXPECT_EQ(life.begin(kAlive, no_news, kNow), Act::Evaluate);
  EXPECT_EQ(life.due(), Life::Due::Release);
  life.on_released();
  life.on_settled(true);
  life.on_evaluated(minutes(1), kNow);
  EXPECT_EQ(life.begin(kAlive, no_news, kNow + minutes(1)), Act::Evaluate);
  EXPECT_EQ(life.due(), Life::Due::Drift);

  life = settled();
  life.on_tracked(kSecret);
  EXPECT_TRUE(life.has_changes());
  EXPECT_EQ(life.begin(kAlive, no_news, kNow), Act::Settle);
  EXPECT_FALSE(life.has_changes());
  EXPECT_EQ(life.due(), Life::Due::Nothing);
}

TEST(AirwayLife, IsTakenDownWithAFlightAndWithout) {
  for (const bool has_flight : {true, false}) {
    Life life = settled();
    life.on_changed();
    EXPECT_EQ(life.begin({.is_being_deleted = true, .has_flight = has_flight}, news, kNow),
              Act::TakeDown);
    EXPECT_TRUE(life.on_child(true)) << "each child that goes brings it back";
    life.on_ended();
    EXPECT_FALSE(life.on_child(true));
  }
}

TEST(AirwayLife, LooksForNoDriftWithoutAFlight) {
  Life life;
  EXPECT_EQ(life.begin(kAlive, no_news, kNow), Act::Evaluate);
  life.on_released();
  life.on_settled(true);
  life.on_evaluated(minutes(10), kNow);
  EXPECT_EQ(life.begin({}, no_news, kNow), Act::Nothing);
  EXPECT_EQ(life.next_look({}, kNow + minutes(11)), std::nullopt);
}

TEST(AirwayLife, SettlesWhenOnlyChildrenHaveChanged) {
  Life life = settled();
  EXPECT_FALSE(life.on_child(true)) << "our own write is no news";
  EXPECT_TRUE(life.on_child(false));
  EXPECT_EQ(life.begin(kAlive, no_news, kNow), Act::Settle);
  life.on_settled(false);
  EXPECT_TRUE(life.on_child(true)) << "Ready depends on the children now";
  EXPECT_EQ(life.begin(kAlive, no_news, kNow), Act::Settle);
}

TEST(AirwayLife, FollowsNoChildrenWhereReadyIsTheFlights) {
  Life life = settled();
  life.on_ready_owned(true);
  EXPECT_FALSE(life.on_child(false));
  EXPECT_EQ(life.begin(kAlive, no_news, kNow), Act::Nothing);
  life.on_changed();
  EXPECT_EQ(life.begin(kAlive, no_news, kNow), Act::Evaluate);
}

TEST(AirwayLife, RunsForWhatItTracksOnlyIfThatIsAnother) {
  Life life = settled();
  life.on_tracked(kSecret);
  EXPECT_EQ(life.begin(kAlive, no_news, kNow), Act::Settle);
  life.on_settled(true);
  life.on_tracked(kSecret);
  EXPECT_EQ(life.begin(kAlive, news, kNow), Act::Evaluate);
  life.on_released();
  life.on_settled(true);
  EXPECT_EQ(life.begin(kAlive, news, kNow), Act::Settle) << "it has been looked at";
}

TEST(AirwayLife, AChangeDuringARunIsAnotherRun) {
  Life life;
  EXPECT_EQ(life.begin(kAlive, no_news, kNow), Act::Evaluate);
  life.on_changed();
  life.on_released();
  life.on_settled(true);
  EXPECT_EQ(life.begin(kAlive, no_news, kNow), Act::Evaluate);
}

TEST(AirwayLife, GoesOnWithAReleaseThatWaitsUntilItsPatienceEnds) {
  Life life;
  EXPECT_EQ(life.begin(kAlive, no_news, kNow), Act::Evaluate);
  EXPECT_TRUE(life.on_release_waits(stage(1, minutes(2)), kNow));
  EXPECT_TRUE(life.waits_for_release());
  EXPECT_EQ(life.patience_left(kNow + seconds(30)), seconds(90));
  EXPECT_TRUE(life.on_child(true));

  EXPECT_EQ(life.begin(kAlive, no_news, kNow + minutes(1)), Act::Evaluate);
  EXPECT_TRUE(life.on_release_waits(stage(1, minutes(2)), kNow + minutes(1)))
      << "counted from the first";
  EXPECT_EQ(life.begin(kAlive, no_news, kNow + minutes(2)), Act::Evaluate);
  EXPECT_FALSE(life.on_release_waits(stage(1, minutes(2)), kNow + minutes(2)));
  life.on_failed();
  EXPECT_EQ(life.begin(kAlive, no_news, kNow + minutes(3)), Act::Evaluate);
  EXPECT_TRUE(life.on_release_waits(stage(1, minutes(2)), kNow + minutes(3))) << "anew";
  EXPECT_TRUE(life.on_release_waits(stage(2, minutes(5)), kNow + minutes(6)))
      << "of something else";
  EXPECT_TRUE(life.on_release_waits(stage(2, minutes(5)), kNow + minutes(10)));
  life.on_failed();
  EXPECT_TRUE(life.on_release_waits(stage(2, minutes(5)), kNow + minutes(30))) << "after a failure";
}

TEST(AirwayLife, GivesEachStageItsOwnPatience) {
  Life life;
  EXPECT_TRUE(life.on_release_waits(stage(1, seconds(30)), kNow));
  EXPECT_TRUE(life.on_release_waits(stage(3, seconds(30)), kNow + seconds(29)));
  EXPECT_EQ(life.patience_left(kNow + seconds(29)), seconds(30));

  EXPECT_TRUE(life.on_release_waits(stage(3, seconds(30)), kNow + seconds(58)));
  EXPECT_FALSE(life.on_release_waits(stage(3, seconds(30)), kNow + seconds(59)));
}

TEST(AirwayLife, DoesNotWaitForEverForStagesThatTakeTurns) {
  Life life;
  EXPECT_TRUE(life.on_release_waits(stage(1, seconds(30)), kNow));
  EXPECT_TRUE(life.on_release_waits(stage(3, seconds(30)), kNow + seconds(10)));
  EXPECT_TRUE(life.on_release_waits(stage(1, seconds(30)), kNow + seconds(20)));
  EXPECT_TRUE(life.on_release_waits(stage(3, seconds(30)), kNow + seconds(39)));
  EXPECT_FALSE(life.on_release_waits(stage(1, seconds(30)), kNow + seconds(40)));

  EXPECT_TRUE(life.on_release_waits(stage(1, seconds(30)), kNow + seconds(50))) << "anew";
}

TEST(AirwayLife, DoesNotWaitForEverForAStageAndAPruneThatTakeTurns) {
  const Life::ReleaseWait first = stage(1, seconds(30));
  const Life::ReleaseWait prune = stage(4, seconds(120));
  Life life;
  EXPECT_TRUE(life.on_release_waits(first, kNow));
  EXPECT_TRUE(life.on_release_waits(prune, kNow + seconds(20)));
  EXPECT_EQ(life.patience_left(kNow + seconds(20)), seconds(120));
  for (int turn = 2; turn < 7; turn += 2) {
    EXPECT_TRUE(life.on_release_waits(first, kNow + turn * seconds(20)));
    EXPECT_TRUE(life.on_release_waits(prune, kNow + (turn + 1) * seconds(19)));
  }
  EXPECT_FALSE(life.on_release_waits(first, kNow + seconds(140)));

  EXPECT_TRUE(life.on_release_waits(prune, kNow + seconds(150))) << "anew";
  EXPECT_EQ(life.patience_left(kNow + seconds(150)), seconds(120));
}

TEST(AirwayLife, AFailureIsRetriedInItsOwnTimeAndNotForEachChild) {
  Life life = settled();
  life.on_changed();
  EXPECT_EQ(life.begin(kAlive, no_news, kNow), Act::Evaluate);
  life.on_failed();
  EXPECT_FALSE(life.on_child(false));
  EXPECT_EQ(life.begin(kAlive, no_news, kNow), Act::Evaluate);
}

TEST(AirwayLife, LooksForDriftAfterItsInterval) {
  Life life;
  EXPECT_EQ(life.begin(kAlive, no_news, kNow), Act::Evaluate);
  life.on_released();
  life.on_settled(true);
  life.on_evaluated(minutes(10), kNow);

  EXPECT_EQ(life.next_look({}, kNow + minutes(4)), minutes(6));
  EXPECT_EQ(life.next_look(seconds(5), kNow + minutes(4)), seconds(5));
  EXPECT_EQ(life.begin(kAlive, no_news, kNow + minutes(9)), Act::Settle);
  life.on_settled(true);
  EXPECT_EQ(life.next_look({}, kNow + minutes(11)), Duration(0));
  EXPECT_EQ(life.begin(kAlive, no_news, kNow + minutes(10)), Act::Evaluate);
  life.on_released();
  life.on_settled(true);
  life.on_evaluated(Duration(0), kNow + minutes(10));
  EXPECT_EQ(life.next_look({}, kNow + minutes(10)), std::nullopt);
}

TEST(AirwayLife, FollowsWhatItTracksNoMoreOftenThanItsInterval) {
  constexpr Life::Facts kLimited{.has_flight = true, .tracked_interval_min = seconds(1)};
  const auto half = std::chrono::milliseconds(500);
  Life life;
  EXPECT_EQ(life.begin(kLimited, no_news, kNow), Act::Evaluate);
  life.on_released();
  life.on_settled(true);
  life.on_evaluated(Duration(0), kNow);
  EXPECT_EQ(life.next_look({}, kNow), std::nullopt);

  life.on_tracked(kSecret);

  EXPECT_EQ(life.tracked_in(kNow + half), half);
  EXPECT_EQ(life.begin(kLimited, news, kNow + half), Act::Settle) << "a child brought it here";
  life.on_settled(true);
  EXPECT_EQ(life.next_look({}, kNow + half), half) << "the change is not forgotten";
  EXPECT_EQ(life.next_look(half / 2, kNow + half), half / 2);
  EXPECT_EQ(life.begin(kLimited, news, kNow + seconds(1)), Act::Evaluate);
  life.on_released();
  life.on_settled(true);
  life.on_evaluated(Duration(0), kNow + seconds(1));
  EXPECT_EQ(life.next_look({}, kNow + seconds(1)), std::nullopt);
  EXPECT_EQ(life.begin(kLimited, news, kNow + seconds(3)), Act::Settle) << "nothing has changed";
}

TEST(AirwayLife, DoesNotComeBackForTrackedChangesWithoutAFlight) {
  Life life = settled();
  life.on_tracked(kSecret);
  EXPECT_EQ(life.begin({}, news, kNow), Act::Nothing);
  EXPECT_EQ(life.next_look({}, kNow), std::nullopt);
}

}  // namespace
}  // namespace hangar::airways
