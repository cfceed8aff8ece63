#include "foresight/day_times.h"
#include "foresight/gap_histogram.h"
#include "foresight/leader_lag.h"
#include "foresight/moment.h"
#include "foresight/rhythm.h"
#include "foresight/smoothing.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <optional>
#include <vector>

namespace hangar::foresight {
namespace {

using namespace std::chrono_literals;

constexpr Instant kStart{1h};
constexpr Terms kFast{.break_even = 1, .resume = 0.001F, .latency = 0.02F, .idle_after = 1};
constexpr Terms kSlow{.break_even = 1, .resume = 0.1F, .latency = 0.02F, .idle_after = 1};

TEST(GapHistogram, KnowsNothingOfAFewGaps) {
  GapHistogram gaps;
  gaps.learn(1);
  EXPECT_FALSE(gaps.best_keep(kFast));
}

TEST(GapHistogram, KeepsForTheGapsWithinABurstAndNotForThoseBetweenBursts) {
  GapHistogram gaps;
  for (int burst = 0; burst < 20; ++burst) {
    for (int event = 0; event < 9; ++event)
      gaps.learn(0.05F);
    gaps.learn(120);
  }

  const std::optional<float> keep = gaps.best_keep(kFast);
  ASSERT_TRUE(keep);
  EXPECT_GE(*keep, 0.05F);
  EXPECT_LT(*keep, 0.2F);
}

TEST(GapHistogram, SleepsAtOnceIfNoGapIsShort) {
  GapHistogram gaps;
  for (int count = 0; count < 20; ++count)
    gaps.learn(30);
  EXPECT_EQ(gaps.best_keep(kFast), 0);
}

TEST(GapHistogram, KeepsLongerIfWakesWouldBeLateButNotAtAnyPrice) {
  GapHistogram minute;
  GapHistogram hour;
  for (int count = 0; count < 20; ++count) {
    minute.learn(30);
    hour.learn(3600);
  }

  const std::optional<float> keep = minute.best_keep(kSlow);
  ASSERT_TRUE(keep);
  EXPECT_GE(*keep, 30);
  EXPECT_EQ(hour.best_keep(kSlow), 0);
}

TEST(GapHistogram, ForgetsGapsThatNoLongerCome) {
  GapHistogram gaps;
  for (int count = 0; count < 200; ++count)
    gaps.learn(0.5F);
  for (int count = 0; count < 600; ++count)
    gaps.learn(30);
  EXPECT_EQ(gaps.best_keep(kFast), 0);
}

TEST(Smoothing, FollowsTheGaps) {
  Smoothing smoothing;
  smoothing.learn(10);
  smoothing.learn(10);
  EXPECT_FALSE(smoothing.guess());
  for (int count = 0; count < 20; ++count)
    smoothing.learn(10);

  const std::optional<Guess> before = smoothing.guess();
  ASSERT_TRUE(before);
  EXPECT_NEAR(before->at, 10, 0.1);
  EXPECT_LT(before->spread, 0.5);
  for (int count = 0; count < 40; ++count)
    smoothing.learn(20);
  EXPECT_NEAR(smoothing.guess()->at, 20, 0.1);
}

TEST(Smoothing, SpreadsItsGuessOverGapsThatDiffer) {
  Smoothing smoothing;
  for (int count = 0; count < 40; ++count)
    smoothing.learn(count % 2 == 0 ? 5 : 15);
  const std::optional<Guess> guess = smoothing.guess();
  ASSERT_TRUE(guess);
  EXPECT_TRUE(guess->contains(5));
  EXPECT_TRUE(guess->contains(15));
}

// Feeds wakes at these times, in seconds after the start.
Rhythm rhythm_of(const std::vector<double>& wakes) {
  Rhythm rhythm;
  double last = 0;
  for (const double at : wakes) {
    rhythm.learn(kStart + to_duration(static_cast<float>(at)), static_cast<float>(at - last));
    last = at;
  }
  return rhythm;
}

std::optional<Guess> next_beat(const Rhythm& rhythm, float at) {
  return rhythm.guess(kStart + to_duration(at));
}

TEST(Rhythm, FindsAPeriod) {
  const Rhythm rhythm = rhythm_of({10, 20, 30, 40, 50});
  const std::optional<Guess> guess = next_beat(rhythm, 51);
  ASSERT_TRUE(guess);
  EXPECT_NEAR(guess->at, 9, 0.1);
}

TEST(Rhythm, FindsAPeriodAmongOtherWakes) {
  const Rhythm rhythm = rhythm_of({10, 13.1, 20, 27.7, 30, 40, 41.9, 50, 54.4, 60, 62.3, 70});
  const std::optional<Guess> guess = next_beat(rhythm, 72);
  ASSERT_TRUE(guess);
  EXPECT_NEAR(guess->at, 8, 0.2);
}

TEST(Rhythm, FindsNoPeriodInWakesThatHaveNone) {
  EXPECT_FALSE(next_beat(rhythm_of({3, 4.1, 9.7, 22, 23.5, 41, 78, 79, 140}), 141));
}

TEST(Rhythm, FollowsAPeriodThatChanges) {
  const Rhythm rhythm = rhythm_of({10, 20, 30, 40, 50, 57, 64, 71, 78, 85, 92, 99, 106, 113, 120});
  const std::optional<Guess> guess = next_beat(rhythm, 121);
  ASSERT_TRUE(guess);
  EXPECT_NEAR(guess->at, 6, 0.5);
}

TEST(Rhythm, ForgetsAPeriodThatIsOver) {
  EXPECT_FALSE(next_beat(rhythm_of({10, 20, 30, 40, 50, 133, 151, 222}), 223));
}

constexpr WallTime kMidnight{std::chrono::sys_days(std::chrono::year(2026) / 4 / 8)};

TEST(DayTimes, KnowsATimeAfterTheSecondDay) {
  DayTimes times;
  times.learn(kMidnight + 2h);
  EXPECT_FALSE(times.guess(kMidnight + 3h));
  times.learn(kMidnight + 24h + 2h + 1s);

  const std::optional<Guess> guess = times.guess(kMidnight + 24h + 3h);
  ASSERT_TRUE(guess);
  EXPECT_NEAR(guess->at, 23 * 3600, 5);
}

TEST(DayTimes, ExpectsATimeThatCameEarlyTodayTomorrow) {
  DayTimes times;
  for (int day = 0; day < 5; ++day)
    times.learn(kMidnight + day * 24h + 2h);
  times.learn(kMidnight + 5 * 24h + 2h - 3s);
  const std::optional<Guess> guess = times.guess(kMidnight + 5 * 24h + 2h - 2s);
  ASSERT_TRUE(guess);
  EXPECT_NEAR(guess->at, 24 * 3600, 5);
}

TEST(DayTimes, KeepsWhatComesEachDayAmongOtherWakes) {
  DayTimes times;
  for (int day = 0; day < 20; ++day) {
    times.learn(kMidnight + day * 24h + 2h);
    for (int other = 0; other < 3; ++other)
      times.learn(kMidnight + day * 24h + 6h + other * 5h + day * 7min);
  }
  const std::optional<Guess> guess = times.guess(kMidnight + 20 * 24h);
  ASSERT_TRUE(guess);
  EXPECT_NEAR(guess->at, 2 * 3600, 60);
}

TEST(DayTimes, DoesNotExpectWhatHasNotComeForAWeek) {
  DayTimes times;
  for (int day = 0; day < 5; ++day)
    times.learn(kMidnight + day * 24h + 2h);
  EXPECT_TRUE(times.guess(kMidnight + 6 * 24h));
  EXPECT_FALSE(times.guess(kMidnight + 12 * 24h));
}

TEST(DayTimes, SurvivesAClockThatIsSetBackAndForward) {
  DayTimes times;
  for (int day = 10; day < 15; ++day)
    times.learn(kMidnight + day * 24h + 2h);
  EXPECT_FALSE(times.guess(kMidnight + 3 * 24h));  // The clock is set back: nothing is expected,
  times.learn(kMidnight - 20000 * 24h);            // not even before 1970,
  EXPECT_TRUE(times.guess(kMidnight + 15 * 24h));  // until it is right again.
}

TEST(LeaderLag, LearnsTheLagBehindOneOfSeveral) {
  LeaderLag lag;
  Instant now = kStart;
  for (int round = 0; round < 30; ++round) {
    now += 10s;
    // Operator 7 leads by 40 ms; 8 wakes at random times before.
    const std::array recent = {
        RecentWake{.id = 8, .at = now - std::chrono::milliseconds(7 + 311 * (round % 5))},
        RecentWake{.id = 7, .at = now - 40ms}};
    lag.learn(now, recent);
  }
  EXPECT_EQ(lag.leader(), 7U);
  const std::optional<Guess> guess = lag.guess();
  ASSERT_TRUE(guess);
  EXPECT_NEAR(guess->at, 0.04, 0.002);
}

TEST(LeaderLag, LeavesALeaderThatLeadsNoLonger) {
  LeaderLag lag;
  for (int round = 0; round < 10; ++round) {
    const Instant now = kStart + round * 10s;
    lag.learn(now, std::array{RecentWake{.id = 7, .at = now - 40ms}});
  }
  ASSERT_TRUE(lag.guess());
  for (int round = 10; round < 20; ++round)
    lag.learn(kStart + round * 10s, {});
  EXPECT_FALSE(lag.guess());
  EXPECT_EQ(lag.leader(), 0U);
}

}  // namespace
}  // namespace hangar::foresight
