#include "foresight/forecaster.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

namespace hangar::foresight {
namespace {

using namespace std::chrono_literals;

constexpr Instant kStart{1h};
constexpr WallTime kWall{std::chrono::sys_days(std::chrono::year(2026) / 4 / 8)};
constexpr std::uint64_t kBytes = std::uint64_t{2} << 20U;

// An operator whose wakes the test chooses, and its cost with the forecaster and with Idle.
class Course {
 public:
  explicit Course(Duration resume, bool can_load_ahead = true)
      : forecaster({.idle_after = 1s, .latency_max = 20ms, .can_load_ahead = can_load_ahead}) {
    for (int times = 0; times < 40; ++times) {
      forecaster.on_resumed(resume);
      // A break-even of about one second.
      forecaster.on_cost(500us, kBytes);
    }
    forecaster.on_idle(moment);
  }

  // It wakes `gap` seconds after it became idle.
  Forecaster::Outcome wake(float gap) {
    const Terms terms = forecaster.terms();
    const Price mine = price_of(forecaster.plan(), gap, terms);
    const Price idle = price_of({.keep = terms.idle_after}, gap, terms);
    cost += mine.cost;
    idle_cost += idle.cost;
    resumes += gap > forecaster.plan().keep ? 1 : 0;
    resumes += gap > forecaster.plan().drop_at ? 1 : 0;
    late += mine.is_late ? 1 : 0;
    pass(gap);
    const Forecaster::Outcome outcome = forecaster.on_wake(moment);
    hits += outcome.is_hit ? 1 : 0;
    used_loads += outcome.has_used_load ? 1 : 0;
    pass(0.002F);
    forecaster.on_idle(moment);
    return outcome;
  }
  void pass(float seconds) {
    moment.at += to_duration(seconds);
    moment.wall += std::chrono::duration_cast<WallTime::duration>(to_duration(seconds));
  }
  void forget() { cost = idle_cost = 0, resumes = late = hits = used_loads = 0; }

  Moment moment{.at = kStart, .wall = kWall};
  Forecaster forecaster;
  double cost = 0;
  double idle_cost = 0;
  int resumes = 0;
  int late = 0;
  int hits = 0;
  int used_loads = 0;
};

TEST(Forecaster, IsIdleUntilItKnowsMore) {
  Course course(1ms);
  EXPECT_EQ(course.forecaster.chosen(), Predictor::Idle);
  EXPECT_FLOAT_EQ(course.forecaster.plan().keep, 1);
  EXPECT_FALSE(course.forecaster.expectation(course.moment));
}

TEST(Forecaster, KeepsASlowGuestInMemoryWhereItCannotBeLoadedAhead) {
  Course course(100ms, /*can_load_ahead=*/false);
  for (int wake = 0; wake < 40; ++wake)
    course.wake(30);
  course.forget();
  for (int wake = 0; wake < 20; ++wake) {
    EXPECT_FALSE(course.forecaster.plan().loads_ahead());
    course.wake(30);
  }
  EXPECT_EQ(course.late, 0);
}

TEST(Forecaster, CountsWhatWasDoneAndNotWhatWasPlanned) {
  Course course(100ms);
  for (int wake = 0; wake < 40; ++wake)
    course.wake(100);
  ASSERT_TRUE(course.forecaster.plan().loads_ahead());
  EXPECT_TRUE(course.wake(100).has_used_load);

  course.forecaster.on_load_refused();
  const Forecaster::Outcome refused = course.wake(100);
  EXPECT_TRUE(refused.is_late);
  EXPECT_FALSE(refused.has_loaded_ahead);

  // It was loaded, and left memory before the wake, because that was short.
  ASSERT_TRUE(course.forecaster.plan().loads_ahead());
  const float load_at = course.forecaster.plan().load_at;
  course.forecaster.on_asleep(course.moment.at + to_duration(load_at + 0.05F));
  const Forecaster::Outcome pressed = course.wake(100);
  EXPECT_TRUE(pressed.is_late);
  EXPECT_TRUE(pressed.has_loaded_ahead);
  EXPECT_FALSE(pressed.has_used_load);
}

TEST(Forecaster, ASuspendThatWaitsForTheDiskHardlyMakesSleepDearer) {
  Course course(1ms);
  const float before = course.forecaster.terms().break_even;
  course.forecaster.on_cost(100ms, kBytes);
  EXPECT_LT(course.forecaster.terms().break_even, 3 * before);
  for (int times = 0; times < 20; ++times)
    course.forecaster.on_cost(500us, kBytes);
  EXPECT_LT(course.forecaster.terms().break_even, 1.1F * before);
}

TEST(Forecaster, IgnoresAWakeOfAGuestThatWasNotIdle) {
  Forecaster forecaster({.idle_after = 1s, .latency_max = 20ms});
  const Forecaster::Outcome outcome = forecaster.on_wake({.at = kStart, .wall = kWall});
  EXPECT_TRUE(outcome.is_hit);
  EXPECT_FALSE(forecaster.is_idle());
}

TEST(Forecaster, SleepsAtOnceBetweenWakesThatAreFarApart) {
  Course course(1ms);
  for (int count = 0; count < 20; ++count)
    course.wake(10);
  course.forget();
  for (int count = 0; count < 100; ++count)
    course.wake(10);
  EXPECT_LT(course.cost, 0.6 * course.idle_cost);
  EXPECT_EQ(course.used_loads, 0);
}

TEST(Forecaster, LoadsAGuestAheadThatResumesTooSlowly) {
  Course course(100ms);
  for (int count = 0; count < 20; ++count)
    course.wake(10 + 0.05F * static_cast<float>(count % 2));
  course.forget();
  for (int count = 0; count < 100; ++count)
    course.wake(10 + 0.05F * static_cast<float>(count % 2));
  EXPECT_LE(course.late, 5);
  EXPECT_GE(course.used_loads, 95);
  EXPECT_LT(course.cost, course.idle_cost);
}

TEST(Forecaster, ExpectsTheNextWakeOfAPeriod) {
  Course course(1ms);
  for (int count = 0; count < 40; ++count)
    course.wake(10);
  const auto expectation = course.forecaster.expectation(course.moment);
  ASSERT_TRUE(expectation);
  EXPECT_NEAR(seconds_between(course.moment.at, expectation->at), 10, 0.1);
  EXPECT_LT(expectation->spread, 1s);
  EXPECT_GT(expectation->confidence, 0.9);

  course.pass(60);
  EXPECT_FALSE(course.forecaster.expectation(course.moment)) << "its time has passed";
}

TEST(Forecaster, KeepsAGuestWithinABurst) {
  Course course(1ms);
  const auto burst = [&course] {
    for (int event = 0; event < 10; ++event)
      course.wake(0.05F);
    course.wake(60);
  };
  for (int count = 0; count < 10; ++count)
    burst();
  course.forget();
  for (int count = 0; count < 20; ++count)
    burst();
  EXPECT_LE(course.resumes, 22);
  EXPECT_LT(course.cost, 0.8 * course.idle_cost);
}

TEST(Forecaster, LoadsAGuestWhenItsLeaderWakes) {
  Course course(100ms);
  const auto round = [&course](float gap) {
    const Instant leads = course.moment.at + to_duration(gap);
    const Plan* const changed = course.forecaster.on_leader_wake(leads);
    course.pass(gap + 0.4F);
    const Forecaster::Outcome outcome =
        course.forecaster.on_wake(course.moment, std::array{RecentWake{.id = 7, .at = leads}});
    course.pass(0.002F);
    course.forecaster.on_idle(course.moment);
    return changed != nullptr && outcome.has_used_load && !outcome.is_late;
  };
  std::mt19937 dice(1);
  std::uniform_real_distribution<float> gap(100, 2000);
  for (int count = 0; count < 40; ++count)
    round(gap(dice));
  ASSERT_EQ(course.forecaster.leader(), 7U);
  int used = 0;
  for (int count = 0; count < 100; ++count)
    used += round(gap(dice)) ? 1 : 0;
  EXPECT_GE(used, 95);
}

// Histories that lie ------------------------------------------------------------------------------

struct Liar {
  const char* name;
  // Chooses the gap, knowing the plan.
  std::function<float(const Forecaster&, int number)> gap;
};

std::vector<Liar> liars() {
  return {
      {.name = "wakes right after it was sent to sleep, late when it is kept",
       .gap = [](const Forecaster& one,
                 int) { return one.plan().keep < 0.3F ? 0.3F : one.plan().keep + 4; }},
      {.name = "as Idle likes it, until a predictor is chosen",
       .gap =
           [](const Forecaster& one, int) {
             if (one.chosen() == Predictor::Idle) return 5.0F;
             return one.plan().keep > 0 ? one.plan().keep + 0.5F : 0.01F;
           }},
      {.name = "right after the window for which it is loaded",
       .gap = [](const Forecaster& one,
                 int) { return one.plan().loads_ahead() ? one.plan().drop_at + 0.01F : 10.0F; }},
      {.name = "a period that changes as soon as it is known",
       .gap = [](const Forecaster&, int number) { return number / 12 % 2 == 0 ? 0.4F : 7.0F; }},
      {.name = "bursts in the middle of a period",
       .gap = [](const Forecaster&, int number) { return number % 40 < 20 ? 10.0F : 0.02F; }},
      {.name = "gaps that double",
       .gap = [](const Forecaster&, int number) { return std::ldexp(0.01F, number % 20); }},
  };
}

TEST(Forecaster, CostsAtMostATwentiethMoreThanIdleWithAHistoryThatLies) {
  for (const Liar& liar : liars()) {
    SCOPED_TRACE(liar.name);
    Course course(1ms);
    for (int number = 0; number < 3000; ++number)
      course.wake(liar.gap(course.forecaster, number));
    EXPECT_LE(course.cost, 1.05 * course.idle_cost + 10);
  }
}

TEST(Forecaster, CostsAtMostATwentiethMoreThanIdleIfNoLoadAheadIsEverUsed) {
  Course course(100ms);
  int useless = 0;
  for (int number = 0; number < 3000; ++number) {
    const Plan& plan = course.forecaster.plan();
    // Every window is missed, and a guest that is kept in memory wakes after it has left.
    float gap = 700 + 13 * static_cast<float>(number % 7);
    if (plan.loads_ahead()) gap = plan.drop_at + 0.01F;
    const Forecaster::Outcome outcome = course.wake(gap);
    useless += outcome.has_loaded_ahead && !outcome.has_used_load ? 1 : 0;
  }
  EXPECT_LE(useless, 3000 / 20);
  EXPECT_LE(course.resumes, 3000 + 3000 / 20);
  EXPECT_LE(course.cost, 1.05 * course.idle_cost + 200);
}

TEST(Forecaster, RecoversFromAHistoryThatLied) {
  Course course(1ms);
  const Liar liar = liars().front();
  for (int number = 0; number < 500; ++number)
    course.wake(liar.gap(course.forecaster, number));
  for (int number = 0; number < 200; ++number)
    course.wake(10);
  course.forget();
  for (int number = 0; number < 100; ++number)
    course.wake(10);
  EXPECT_LT(course.cost, 0.7 * course.idle_cost);
}

TEST(Forecaster, SurvivesAClockThatJumps) {
  Course course(100ms);
  for (int number = 0; number < 300; ++number) {
    if (number % 50 == 20) course.moment.wall -= 48h;
    if (number % 50 == 40) course.moment.wall += 31 * 24h;
    course.wake(10);
  }
  // The period is measured by the clock that does not jump.
  EXPECT_GE(course.used_loads, 270);
  EXPECT_LE(course.late, 30);
}

TEST(Forecaster, TakesAGapOfNoTimeAndOneOfAYear) {
  Course course(1ms);
  for (const float gap : {0.0F, 0.0F, 3.2e7F, 0.0F, 3.2e7F, 0.0F, 5.0F, 5.0F}) {
    course.wake(gap);
    EXPECT_TRUE(std::isfinite(course.forecaster.plan().keep));
  }
  course.pass(-100);
  course.forecaster.on_wake(course.moment);
  course.forecaster.on_idle(course.moment);
  EXPECT_GE(course.forecaster.plan().keep, 0);
}

}  // namespace
}  // namespace hangar::foresight
