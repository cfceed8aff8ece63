#include "operators/restlessness.h"

#include "operators/limits.h"

#include <gtest/gtest.h>

#include <chrono>

namespace hangar::operators {
namespace {

using namespace std::chrono_literals;

class RestlessnessTest : public testing::Test {
 protected:
  enum class Does { Nothing, Writes };
  // Wakes by a timer, `gap` after one another.
  void tick(int count, Duration gap, Does does = Does::Nothing) {
    for (int wake = 0; wake < count; ++wake) {
      now_ += gap;
      restlessness_.on_turn({.has_timer = true, .is_settled = true, .at = now_});
      if (does == Does::Writes) restlessness_.on_work();
    }
  }
  // The first wake is counted when the second begins.
  void become_restless(Duration gap) {
    tick(limits::kRestlessWakes + 1, gap);
    ASSERT_TRUE(is_restless());
  }
  [[nodiscard]] std::optional<Duration> period() const { return restlessness_.period(now_); }
  [[nodiscard]] bool is_restless() const { return period().has_value(); }

  Instant now_{24h};
  Restlessness restlessness_;
};

TEST_F(RestlessnessTest, IsThatOfAGuestThatItsTimerWakesForNothing) {
  tick(limits::kRestlessWakes, 10s);
  EXPECT_FALSE(is_restless());
  tick(1, 10s);
  EXPECT_EQ(period(), 10s);
}

TEST_F(RestlessnessTest, IsNotThatOfAGuestThatWritesNowAndThen) {
  for (int round = 0; round < 20; ++round) {
    tick(limits::kRestlessWakes - 1, 10s);
    tick(1, 10s, Does::Writes);
    EXPECT_FALSE(is_restless()) << "in round " << round;
  }
}

TEST_F(RestlessnessTest, SteadyGuestsGetOneVerdict) {
  for (int every = 1; every <= 100; ++every) {
    restlessness_ = Restlessness();
    int changes = 0;
    bool was_restless = false;
    for (int wake = 1; wake <= 1000; ++wake) {
      tick(1, 2s, wake % every == 0 ? Does::Writes : Does::Nothing);
      if (is_restless() != was_restless) ++changes;
      was_restless = is_restless();
    }
    EXPECT_LE(changes, 1) << "writes at each wake number " << every;
  }
}

TEST_F(RestlessnessTest, EndsWhenTheGuestHasWork) {
  become_restless(10s);
  tick(1, 10s, Does::Writes);
  tick(limits::kRestlessUsefulWakes - 1, 10s, Does::Writes);
  EXPECT_TRUE(is_restless()) << "the last of them is not over";
  tick(1, 10s);
  EXPECT_FALSE(is_restless());
  tick(limits::kRestlessWakes - 1, 10s);
  EXPECT_FALSE(is_restless());
  tick(1, 10s);
  EXPECT_TRUE(is_restless());
}

// Much that was useful before does not end it at once.
TEST_F(RestlessnessTest, BeginsAfterABurstOfWorkAndStays) {
  tick(40, 10s, Does::Writes);
  become_restless(10s);
  tick(1, 10s);
  EXPECT_TRUE(is_restless());
}

TEST_F(RestlessnessTest, EndsWhenTheTimerHasStopped) {
  become_restless(10s);
  now_ = restlessness_.ends_at();
  EXPECT_TRUE(is_restless());
  now_ += 1ns;
  EXPECT_FALSE(is_restless());
  EXPECT_EQ(now_ - 1ns, Instant(24h) + 10s * (limits::kRestlessWakes + 1) + 30s);
  // What comes later has to show itself.
  tick(limits::kRestlessWakes, 10s);
  EXPECT_FALSE(is_restless());
}

TEST_F(RestlessnessTest, IsNotThatOfALongPeriod) {
  tick(100, limits::kRestlessPauseMax);
  EXPECT_TRUE(is_restless());
  restlessness_ = Restlessness();
  tick(100, limits::kRestlessPauseMax + 1s);
  EXPECT_FALSE(is_restless());
}

// Waiting for caches at a start, for example.
TEST_F(RestlessnessTest, IsNotThatOfAShortBurst) {
  tick(99, 100ms);
  EXPECT_FALSE(is_restless());
  tick(3, 100ms);
  EXPECT_EQ(period(), 100ms);
}

TEST_F(RestlessnessTest, IsThatOfATimerThatIsAlwaysDue) {
  tick(99'000, 100us);
  EXPECT_FALSE(is_restless());
  tick(2000, 100us);
  EXPECT_EQ(std::chrono::round<std::chrono::microseconds>(period().value_or(0s)), 100us);
}

TEST_F(RestlessnessTest, LeavesOutWakesInWhichSomethingElseArrived) {
  for (int wake = 0; wake < 100; ++wake) {
    tick(1, 10s);
    restlessness_.on_turn({.has_event = true, .is_settled = true, .at = now_ + 1s});
  }
  EXPECT_FALSE(is_restless());
  for (int wake = 0; wake < 100; ++wake) {
    now_ += 10s;
    restlessness_.on_turn({.has_timer = true, .has_event = true, .is_settled = true, .at = now_});
  }
  EXPECT_FALSE(is_restless());
  become_restless(10s);
  restlessness_.on_turn({.has_event = true, .is_settled = true, .at = now_ + 1s});
  restlessness_.on_work();
  tick(1, 10s);
  EXPECT_TRUE(is_restless()) << "work for an event is not the timer's";
}

TEST_F(RestlessnessTest, CountsWhatTheGuestDoesAfterItsReadsWereAnswered) {
  for (int wake = 0; wake < 100; ++wake) {
    tick(1, 10s);
    restlessness_.on_turn({.at = now_ + 1s});
    restlessness_.on_work();
  }
  EXPECT_FALSE(is_restless());
  for (int wake = 0; wake < limits::kRestlessWakes; ++wake) {
    tick(1, 10s);
    restlessness_.on_turn({.at = now_ + 1s});
  }
  EXPECT_FALSE(is_restless()) << "the first of these ended a useful one";
  tick(1, 10s);
  EXPECT_TRUE(is_restless()) << "reads alone change nothing";
}

TEST_F(RestlessnessTest, LeavesOutWakesThatStillWaitForAnAnswer) {
  for (int wake = 0; wake < 100; ++wake) {
    now_ += 1s;
    restlessness_.on_turn({.has_timer = true, .is_settled = false, .at = now_});
  }
  EXPECT_FALSE(is_restless());
}

TEST_F(RestlessnessTest, TellsAnotherPeriodOnlyWhenItIsConsiderablyAnother) {
  become_restless(10s);
  tick(40, 11s);
  EXPECT_EQ(period(), 10s);
  tick(40, 20s);
  EXPECT_GT(period(), 15s);
  tick(40, 9990ms);
  tick(40, 2s);
  EXPECT_LT(period(), 3s);
}

TEST_F(RestlessnessTest, TellsAPeriodToTwoDigits) {
  become_restless(10034ms);
  EXPECT_EQ(period(), 10s);
  restlessness_ = Restlessness();
  become_restless(1567ms);
  EXPECT_EQ(std::chrono::round<std::chrono::milliseconds>(*period()), 1600ms);
}

TEST_F(RestlessnessTest, StaysWhenTheGuestStartsAnew) {
  become_restless(10s);
  restlessness_.on_start();
  now_ += 5s;
  EXPECT_TRUE(is_restless());
  tick(1, 10s);
  EXPECT_EQ(period(), 10s);
}

}  // namespace
}  // namespace hangar::operators
