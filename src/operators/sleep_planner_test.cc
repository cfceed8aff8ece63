#include "operators/sleep_planner.h"

#include "base/metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>

namespace hangar::operators {
namespace {

using namespace std::chrono_literals;

constexpr SleepPolicy kPolicy{.kind = SleepPolicy::Kind::Predictive, .after = 1s};

class SleepPlannerTest : public testing::Test {
 protected:
  [[nodiscard]] foresight::Moment at(Duration time) const {
    return {.at = Instant(1h) + time,
            .wall = WallTime(std::chrono::duration_cast<WallTime::duration>(time))};
  }
  // Over all series of the name, or those with this label.
  double sum_of(const std::string& name, const std::string& outcome = {}) {
    double sum = 0;
    for (const Metrics::Family& family : metrics_.collect()) {
      if (family.name != name) continue;
      for (const Metrics::Sample& sample : family.samples) {
        const bool has_outcome = std::ranges::any_of(
            sample.labels, [&](const auto& label) { return label.second == outcome; });
        if (outcome.empty() || has_outcome) sum += sample.value;
      }
    }
    return sum;
  }
  double decisions(const std::string& outcome) {
    return sum_of("hangar_operator_sleep_decisions_total", outcome);
  }

  Metrics metrics_;
  SleepPlanners planners_{metrics_};
};

TEST_F(SleepPlannerTest, PlansLikeIdleAtFirstAndKeepsItsPlan) {
  SleepPlanner planner(planners_, "team", kPolicy, true, [] {});
  EXPECT_EQ(planner.nap(at(0s)).sleep_at, at(1s).at);
  EXPECT_EQ(planner.nap(at(700ms)).sleep_at, at(1s).at);
  EXPECT_EQ(planner.nap(at(0s)).load_at, std::nullopt);
}

TEST_F(SleepPlannerTest, CountsEachDecisionOnce) {
  SleepPlanner planner(planners_, "team", kPolicy, true, [] {});
  planner.on_arrival(at(0s));
  for (int wake = 0; wake < 20; ++wake) {
    static_cast<void>(planner.nap(at(wake * 10s)));
    planner.on_arrival(at(wake * 10s + 9s));
    planner.on_arrival(at(wake * 10s + 9s));
  }
  EXPECT_EQ(decisions("hit") + decisions("miss"), 20);
  EXPECT_EQ(planner.nap(at(200s)).sleep_at, at(200s).at) << "nothing comes within a second";
  EXPECT_TRUE(planner.expectation(at(200s)));
}

TEST_F(SleepPlannerTest, TellsItsOperatorWhenALeaderChangesItsPlan) {
  constexpr SleepPolicy kStrict{
      .kind = SleepPolicy::Kind::Predictive, .after = 1s, .wake_latency = 20ms};
  int changes = 0;
  SleepPlanner leader(planners_, "team", kStrict, true, [] {});
  SleepPlanner follower(planners_, "team", kStrict, true, [&changes] { ++changes; });
  for (int times = 0; times < 30; ++times)
    follower.on_loaded({.took = 100ms, .cpu_time = 10ms});
  Duration now{};
  for (int wake = 0; wake < 60; ++wake) {
    static_cast<void>(leader.nap(at(now)));
    static_cast<void>(follower.nap(at(now)));
    // The gaps have no pattern.
    now += 200s + 97s * (wake * 7919 % 23);
    leader.on_arrival(at(now));
    now += 400ms;
    follower.on_arrival(at(now));
  }
  EXPECT_GE(changes, 20);
}

TEST_F(SleepPlannerTest, CountsWakesThatTookLongerThanTheGoalAndLoadsThatWereRefused) {
  SleepPlanner planner(planners_, "team", kPolicy, true, [] {});
  planner.on_woken({.took = kPolicy.wake_latency, .cpu_time = 1ms});
  planner.on_loaded({.took = kPolicy.wake_latency + 1ms, .cpu_time = 1ms});
  EXPECT_EQ(sum_of("hangar_operator_late_wakes_total"), 0);
  planner.on_woken({.took = kPolicy.wake_latency + 1ms, .cpu_time = 1ms});
  EXPECT_EQ(sum_of("hangar_operator_late_wakes_total"), 1);
  planner.on_load_refused();
  EXPECT_EQ(sum_of("hangar_operator_loads_ahead_total", "refused"), 1);
}

TEST_F(SleepPlannerTest, ForgetsItsPlanWhenItsGuestStartsAnew) {
  SleepPlanner planner(planners_, "team", kPolicy, true, [] {});
  static_cast<void>(planner.nap(at(0s)));
  planner.on_start();
  planner.on_arrival(at(5s));
  EXPECT_EQ(decisions("hit") + decisions("miss"), 0);
  EXPECT_EQ(planner.nap(at(9s)).sleep_at, at(10s).at);
}

}  // namespace
}  // namespace hangar::operators
