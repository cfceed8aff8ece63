#include "operators/life.h"

#include "operators/limits.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <random>

namespace hangar::operators {
namespace {

using namespace std::chrono_literals;
using Act = Life::Act;

constexpr Instant kStart{1h};

Life sleeper() {
  return Life({.sleep_after = 2s});
}

// A guest after its first turn, at kStart.
Life started(Life life = sleeper()) {
  EXPECT_EQ(life.next(kStart).act, Act::Start);
  life.on_turn_ended(Life::TurnEnd::Waits, kStart);
  return life;
}

Life asleep() {
  Life life = started();
  EXPECT_EQ(life.next(kStart + 2s).act, Act::Sleep);
  life.on_sleep_ended(Life::SleepEnd::Asleep, kStart + 2s);
  return life;
}

// Asleep before, and loaded as the nap says.
Life loaded(const Life::Nap& nap) {
  Life life = asleep();
  EXPECT_EQ(life.next(*nap.load_at, &nap).act, Act::Load);
  life.on_load_ended(Life::LoadEnd::Loaded, *nap.load_at);
  return life;
}

TEST(Life, BeginsWithAStart) {
  Life life = sleeper();
  EXPECT_EQ(life.phase(), Phase::Starting);
  EXPECT_EQ(life.next(kStart).act, Act::Start);
  EXPECT_EQ(life.phase(), Phase::Starting);
  life.on_turn_ended(Life::TurnEnd::Waits, kStart);
  EXPECT_EQ(life.phase(), Phase::Running);
}

TEST(Life, LeavesMemoryWhenItIsEvictedWhateverHasArrived) {
  Life life = started();
  life.on_arrival();

  life.evict();

  EXPECT_EQ(life.next(kStart).act, Act::Sleep);
  life.on_sleep_ended(Life::SleepEnd::Asleep, kStart);
  EXPECT_FALSE(life.is_evicted());
  EXPECT_EQ(life.next(kStart).act, Act::Wake);  // For what had arrived.
}

TEST(Life, LeavesMemoryWhenItIsEvictedAlthoughItNeverSleeps) {
  Life life = started(Life({.sleep_after = std::nullopt}));
  EXPECT_FALSE(life.may_be_pressed());
  EXPECT_EQ(life.next(kStart + 1h).act, Act::Nothing);

  life.evict();

  EXPECT_EQ(life.next(kStart + 1h).act, Act::Sleep);
}

TEST(Life, IsEvictedWhenItsTurnIsOver) {
  Life life = started();
  life.on_arrival();
  ASSERT_EQ(life.next(kStart).act, Act::Wake);

  life.evict();

  EXPECT_EQ(life.next(kStart).act, Act::Nothing);
  life.on_arrival();
  life.on_turn_ended(Life::TurnEnd::Waits, kStart);
  EXPECT_EQ(life.next(kStart).act, Act::Sleep);
}

TEST(Life, KeepsWhatHasArrivedForATurnThatIsPutOff) {
  Life life = started();
  life.on_arrival();
  ASSERT_EQ(life.next(kStart).act, Act::Wake);
  life.evict();

  life.on_turn_put_off(kStart);

  ASSERT_EQ(life.next(kStart).act, Act::Sleep);
  life.on_sleep_ended(Life::SleepEnd::Asleep, kStart);
  EXPECT_EQ(life.next(kStart).act, Act::Wake);
}

TEST(Life, IsNoLongerEvictedOnceItHasFailed) {
  Life life = started();
  life.evict();

  life.fail(kStart);

  EXPECT_FALSE(life.is_evicted());
  ASSERT_EQ(life.next(life.retry_at()).act, Act::Start);
  life.on_turn_ended(Life::TurnEnd::Waits, life.retry_at());
  EXPECT_EQ(life.next(life.retry_at()).act, Act::Nothing);
}

TEST(Life, SleepsWithWhatHasArrivedOnceItIsHeld) {
  Life life = started();
  life.on_arrival();

  life.hold();

  EXPECT_TRUE(life.is_settling());
  EXPECT_EQ(life.next(kStart).act, Act::Sleep);
  life.on_sleep_ended(Life::SleepEnd::Asleep, kStart);
  EXPECT_FALSE(life.is_settling());
  EXPECT_TRUE(life.is_asleep());
  EXPECT_EQ(life.next(kStart + 1h).act, Act::Nothing) << "no turn begins";
}

TEST(Life, WaitsForTheAnswersOfAGuestThatIsHeld) {
  Life life = started();
  life.expect_answer(true);
  life.hold();
  EXPECT_EQ(life.next(kStart + 1h).act, Act::Nothing);
  EXPECT_TRUE(life.is_settling());

  life.expect_answer(false);

  EXPECT_EQ(life.next(kStart + 1h).act, Act::Sleep);
}

TEST(Life, IsNotWaitedForIfItCannotSleep) {
  Life never = started(Life({}));
  never.hold();
  EXPECT_FALSE(never.is_settling());
  EXPECT_EQ(never.next(kStart + 1h).act, Act::Nothing);

  Life in_vain = started();
  in_vain.hold();
  EXPECT_EQ(in_vain.next(kStart).act, Act::Sleep);
  in_vain.on_sleep_ended(Life::SleepEnd::StaysResident, kStart);
  EXPECT_FALSE(in_vain.is_settling());

  Life fresh = sleeper();
  fresh.hold();
  EXPECT_EQ(fresh.next(kStart).act, Act::Nothing) << "nothing starts";
}

TEST(Life, GoesOnWithAnInstanceOfTheHostBeforeThisOne) {
  Life life = sleeper();

  life.take_over({.started_at = kStart - 1h, .idle_since = kStart - 30min, .start_count = 3});

  EXPECT_EQ(life.phase(), Phase::Asleep);
  EXPECT_EQ(life.start_count(), 3U);
  EXPECT_EQ(life.started_at(), kStart - 1h);
  EXPECT_EQ(life.next(kStart).act, Act::Nothing);
  life.on_arrival();
  EXPECT_EQ(life.next(kStart).act, Act::Wake);
}

TEST(Life, DoesOneThingAtATime) {
  Life life = sleeper();
  ASSERT_EQ(life.next(kStart).act, Act::Start);
  life.on_arrival();
  EXPECT_EQ(life.next(kStart).act, Act::Nothing);
}

TEST(Life, HasOneMoreTurnBeforeItSleepsIfThatIsWantedAndStaysIdleInIt) {
  Life life = started();
  life.want_last_turn(true);
  EXPECT_EQ(life.next(kStart + 1s).act, Act::Nothing);
  ASSERT_EQ(life.next(kStart + 2s).act, Act::Wake);
  EXPECT_TRUE(life.may_have_turn());
  life.stay_idle();
  life.on_turn_ended(Life::TurnEnd::Waits, kStart + 3s);
  EXPECT_EQ(life.idle_since(), kStart);

  life.want_last_turn(false);
  EXPECT_EQ(life.next(kStart + 3s).act, Act::Sleep);
  EXPECT_FALSE(life.may_have_turn());
}

TEST(Life, StaysPressedInItsLastTurn) {
  Life life = started();
  life.press();
  life.want_last_turn(true);
  ASSERT_EQ(life.next(kStart).act, Act::Wake);
  life.stay_idle();
  life.on_turn_ended(Life::TurnEnd::Waits, kStart);

  life.want_last_turn(false);
  EXPECT_EQ(life.next(kStart).act, Act::Sleep);
}

TEST(Life, WakesForWhatArrivedDuringATurn) {
  Life life = sleeper();
  ASSERT_EQ(life.next(kStart).act, Act::Start);
  life.on_arrival();
  life.on_turn_ended(Life::TurnEnd::Waits, kStart);
  EXPECT_EQ(life.next(kStart).act, Act::Wake);
}

TEST(Life, SleepsOnceItHasBeenIdleForLongEnough) {
  Life life = started();
  const Life::Step early = life.next(kStart + 1s);
  EXPECT_EQ(early.act, Act::Nothing);
  EXPECT_EQ(early.ask_again, kStart + 2s);
  EXPECT_EQ(life.next(kStart + 2s).act, Act::Sleep);
}

TEST(Life, StaysForAnAnswerThatIsOnItsWayButNotForLong) {
  Life life = started(Life({.sleep_after = 0s, .answer_wait = 100ms}));
  life.expect_answer(true);
  EXPECT_EQ(life.next(kStart).ask_again, kStart + 100ms);
  EXPECT_EQ(life.next(kStart + 100ms).act, Act::Sleep);

  Life answered = started(Life({.sleep_after = 0s, .answer_wait = 100ms}));
  answered.expect_answer(true);
  ASSERT_EQ(answered.next(kStart).act, Act::Nothing);
  answered.expect_answer(false);
  EXPECT_EQ(answered.next(kStart).act, Act::Sleep);

  Life pressed = started(Life({.sleep_after = 0s, .answer_wait = 100ms}));
  pressed.expect_answer(true);
  pressed.press();
  EXPECT_EQ(pressed.next(kStart).act, Act::Sleep);
}

TEST(Life, WhatArrivesBeforeATurnTakesItsEventsIsNoReasonForAnother) {
  Life life = asleep();
  life.on_arrival();
  ASSERT_EQ(life.next(kStart + 3s).act, Act::Wake);
  life.on_arrival();
  life.on_handed_over();
  life.on_turn_ended(Life::TurnEnd::Waits, kStart + 3s);
  EXPECT_EQ(life.next(kStart + 5s).act, Act::Sleep);
}

TEST(Life, NeverSleepsWhereItMayNot) {
  Life life = started(Life({.sleep_after = std::nullopt}));
  life.press();
  const Life::Step step = life.next(kStart + 1000h);
  EXPECT_EQ(step.act, Act::Nothing);
  EXPECT_FALSE(step.ask_again.has_value());
}

TEST(Life, SleepsAtOnceUnderPressure) {
  Life life = started();
  ASSERT_TRUE(life.may_be_pressed());
  life.press();
  EXPECT_EQ(life.next(kStart).act, Act::Sleep);
}

TEST(Life, WakesFromSleepForAnArrivalOnly) {
  Life life = asleep();
  EXPECT_EQ(life.phase(), Phase::Asleep);
  EXPECT_EQ(life.next(kStart + 1000h).act, Act::Nothing);
  life.on_arrival();
  EXPECT_EQ(life.next(kStart + 1000h).act, Act::Wake);
}

TEST(Life, WakesForWhatArrivedWhileItFellAsleep) {
  Life life = started();
  ASSERT_EQ(life.next(kStart + 2s).act, Act::Sleep);
  life.on_arrival();
  life.on_sleep_ended(Life::SleepEnd::Asleep, kStart + 2s);
  EXPECT_EQ(life.next(kStart + 2s).act, Act::Wake);
}

TEST(Life, TriesToSleepAgainOnlyAfterAWhileWhateverHappens) {
  for (const Duration sleep_after : {Duration(0s), Duration(2s)}) {
    Life life = started(Life({.sleep_after = sleep_after, .sleep_retry = 10s}));
    ASSERT_EQ(life.next(kStart + 2s).act, Act::Sleep);
    life.on_sleep_ended(Life::SleepEnd::StaysResident, kStart + 3s);
    EXPECT_EQ(life.phase(), Phase::Running);
    EXPECT_EQ(life.next(kStart + 4s).ask_again, kStart + 13s);
    life.press();
    EXPECT_EQ(life.next(kStart + 5s).ask_again, kStart + 13s);
    // It was awake in between, which changes nothing about the disk.
    life.on_arrival();
    ASSERT_EQ(life.next(kStart + 6s).act, Act::Wake);
    life.on_turn_ended(Life::TurnEnd::Waits, kStart + 6s);
    EXPECT_EQ(life.next(kStart + 12s).ask_again, kStart + 13s);
    EXPECT_EQ(life.next(kStart + 13s).act, Act::Sleep);
  }
}

TEST(Life, StartsAnewTwiceAsLateAfterEachFailure) {
  Life life = sleeper();
  Instant now = kStart;
  for (const Duration delay : {1s, 2s, 4s, 8s}) {
    ASSERT_EQ(life.next(now).act, Act::Start);
    life.on_turn_ended(Life::TurnEnd::Failed, now);
    EXPECT_EQ(life.phase(), Phase::BackOff);
    EXPECT_EQ(life.next(now).ask_again, now + delay);
    now += delay;
  }
  EXPECT_EQ(life.start_count(), 4U);
}

TEST(Life, WaitsNoLongerThanTheLongestBackOff) {
  Life life = sleeper();
  Instant now = kStart;
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(life.next(now).act, Act::Start);
    life.on_turn_ended(Life::TurnEnd::Failed, now);
    now = life.retry_at();
  }
  ASSERT_EQ(life.next(now).act, Act::Start);
  life.on_turn_ended(Life::TurnEnd::Failed, now);
  EXPECT_EQ(life.retry_at() - now, limits::kOperatorBackoffMax);
}

TEST(Life, ForgetsFailuresOfAGuestThatRanForLong) {
  Life life = sleeper();
  ASSERT_EQ(life.next(kStart).act, Act::Start);
  life.on_turn_ended(Life::TurnEnd::Failed, kStart);
  const Instant restarted = kStart + 1s;
  ASSERT_EQ(life.next(restarted).act, Act::Start);
  life.on_turn_ended(Life::TurnEnd::Waits, restarted);
  life.fail(restarted + limits::kOperatorStableMin);
  EXPECT_EQ(life.retry_at(), restarted + limits::kOperatorStableMin + 1s);
}

TEST(Life, AFailureFromOutsideWaitsForTheActUnderWay) {
  Life life = started();
  ASSERT_EQ(life.next(kStart + 2s).act, Act::Sleep);
  life.fail(kStart + 2s);
  EXPECT_EQ(life.phase(), Phase::Running);
  life.on_sleep_ended(Life::SleepEnd::Asleep, kStart + 2s);
  EXPECT_EQ(life.phase(), Phase::BackOff);
}

TEST(Life, IsOverOnceItCompleted) {
  Life life = sleeper();
  ASSERT_EQ(life.next(kStart).act, Act::Start);
  life.on_turn_ended(Life::TurnEnd::Completed, kStart);
  life.on_arrival();
  EXPECT_EQ(life.next(kStart + 1000h).act, Act::Nothing);
  EXPECT_EQ(life.phase(), Phase::Completed);
}

// All events in any order: whatever the interleaving, every arrival is delivered, the guest does
// not sleep while one waits, and no two acts overlap. HANGAR_TEST_SEED repeats a run.
TEST(Life, LosesNothingInAnyOrder) {
  const char* const given = std::getenv("HANGAR_TEST_SEED");  // NOLINT(concurrency-mt-unsafe)
  const std::uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  SCOPED_TRACE("HANGAR_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto chance = [&random](unsigned percent) { return random() % 100 < percent; };

  for (int round = 0; round < 200; ++round) {
    Life life({.sleep_after = Duration(random() % 3'000'000'000)});
    Instant now = kStart;
    Act under_way = Act::Nothing;
    int waiting = 0;  // Arrivals that the running instance has not been given.
    bool runs = false;
    for (int i = 0; i < 500; ++i) {
      now += Duration(random() % 1'000'000'000);
      if (runs && chance(30)) {
        life.on_arrival();
        ++waiting;
      }
      if (chance(5)) life.press();
      if (chance(20)) life.expect_answer(chance(50));
      if (chance(10) && (under_way == Act::Start || under_way == Act::Wake)) {
        life.on_handed_over();
        waiting = 0;
      }
      if (chance(2)) {
        life.fail(now);
        if (life.phase() == Phase::BackOff) {
          runs = false;
          waiting = 0;
        }
      }
      if (under_way == Act::Nothing) {
        const Life::Step step = life.next(now);
        if (step.act == Act::Nothing) {
          ASSERT_EQ(waiting, 0) << "it rests with something to do";
          if (life.phase() == Phase::Completed) break;
          ASSERT_TRUE(life.phase() == Phase::Asleep || step.ask_again.has_value())
              << "nobody would look at it again";
        }
        if (step.act == Act::Start) runs = true;
        if (step.act == Act::Sleep) ASSERT_EQ(waiting, 0);
        if (step.act == Act::Start || step.act == Act::Wake) waiting = 0;
        under_way = step.act;
        continue;
      }
      ASSERT_EQ(life.next(now).act, Act::Nothing) << "two acts at once";
      if (!chance(50)) continue;
      if (under_way == Act::Sleep) {
        life.on_sleep_ended(chance(90) ? Life::SleepEnd::Asleep : Life::SleepEnd::StaysResident,
                            now);
      } else {
        life.on_turn_ended(chance(95)   ? Life::TurnEnd::Waits
                           : chance(95) ? Life::TurnEnd::Failed
                                        : Life::TurnEnd::Completed,
                           now);
      }
      under_way = Act::Nothing;
      if (life.phase() == Phase::BackOff || life.phase() == Phase::Completed) {
        runs = false;
        waiting = 0;
      }
    }
  }
}

TEST(Life, TakesANapInsteadOfTheUsualTime) {
  Life life = started();
  const Life::Nap nap{.sleep_at = kStart + 5s};
  const Life::Step step = life.next(kStart + 3s, &nap);
  EXPECT_EQ(step.act, Act::Nothing);
  EXPECT_EQ(step.ask_again, kStart + 5s);
  EXPECT_EQ(life.next(kStart + 5s, &nap).act, Act::Sleep);
}

TEST(Life, IsLoadedOnceInANapAndSleepsAgain) {
  Life life = started();
  const Life::Nap nap{.sleep_at = kStart, .load_at = kStart + 10s, .drop_at = kStart + 12s};
  ASSERT_EQ(life.next(kStart, &nap).act, Act::Sleep);
  life.on_sleep_ended(Life::SleepEnd::Asleep, kStart);
  EXPECT_EQ(life.next(kStart + 1s, &nap).ask_again, kStart + 10s);

  ASSERT_EQ(life.next(kStart + 10s, &nap).act, Act::Load);
  EXPECT_FALSE(life.may_have_turn());
  life.on_load_ended(Life::LoadEnd::Loaded, kStart + 10s);
  EXPECT_EQ(life.phase(), Phase::Running);
  EXPECT_EQ(life.idle_since(), kStart);
  EXPECT_EQ(life.next(kStart + 11s, &nap).act, Act::Nothing);

  ASSERT_EQ(life.next(kStart + 12s, &nap).act, Act::Sleep);
  life.on_sleep_ended(Life::SleepEnd::Asleep, kStart + 12s);
  EXPECT_EQ(life.next(kStart + 12s, &nap).ask_again, std::nullopt);
}

TEST(Life, IsLoadedOnceInEachPlan) {
  Life::Nap nap{.sleep_at = kStart, .load_at = kStart + 10s, .drop_at = kStart + 12s};
  Life life = loaded(nap);
  ASSERT_EQ(life.next(kStart + 12s, &nap).act, Act::Sleep);
  life.on_sleep_ended(Life::SleepEnd::Asleep, kStart + 12s);

  // The operator that it follows has woken again.
  nap = {.sleep_at = kStart, .load_at = kStart + 30s, .drop_at = kStart + 32s};
  EXPECT_EQ(life.next(kStart + 20s, &nap).ask_again, kStart + 30s);
  ASSERT_EQ(life.next(kStart + 30s, &nap).act, Act::Load);
  life.on_load_ended(Life::LoadEnd::StaysAsleep, kStart + 30s);
  EXPECT_EQ(life.next(kStart + 30s, &nap).act, Act::Nothing);
}

TEST(Life, StaysLoadedAfterATurnForItsMetricsAlone) {
  const Life::Nap nap{.sleep_at = kStart, .load_at = kStart + 10s, .drop_at = kStart + 20s};
  Life life = loaded(nap);

  life.on_arrival();
  ASSERT_EQ(life.next(kStart + 11s, &nap).act, Act::Wake);
  life.stay_idle();
  life.on_turn_ended(Life::TurnEnd::Waits, kStart + 11s);
  EXPECT_EQ(life.next(kStart + 11s, &nap).ask_again, kStart + 20s);
}

TEST(Life, IsNotLoadedAgainWhenItWasPressedWhileItWasLoaded) {
  const Life::Nap nap{.sleep_at = kStart, .load_at = kStart + 10s, .drop_at = kStart + 20s};
  Life life = loaded(nap);
  life.press();
  ASSERT_EQ(life.next(kStart + 11s, &nap).act, Act::Sleep);
  life.on_sleep_ended(Life::SleepEnd::Asleep, kStart + 11s);
  EXPECT_EQ(life.next(kStart + 12s, &nap).act, Act::Nothing);
}

TEST(Life, WakesForWhatArrivedWhileItWasLoaded) {
  Life life = asleep();
  const Life::Nap nap{.sleep_at = kStart, .load_at = kStart + 10s, .drop_at = kStart + 20s};
  ASSERT_EQ(life.next(kStart + 10s, &nap).act, Act::Load);
  life.on_arrival();
  life.on_load_ended(Life::LoadEnd::StaysAsleep, kStart + 10s);
  EXPECT_EQ(life.next(kStart + 10s, &nap).act, Act::Wake);
}

TEST(Life, FailsAfterALoadThatFailed) {
  Life life = asleep();
  const Life::Nap nap{.sleep_at = kStart, .load_at = kStart + 10s, .drop_at = kStart + 20s};
  ASSERT_EQ(life.next(kStart + 10s, &nap).act, Act::Load);
  life.fail(kStart + 10s);
  life.on_load_ended(Life::LoadEnd::StaysAsleep, kStart + 10s);
  EXPECT_EQ(life.phase(), Phase::BackOff);
}

}  // namespace
}  // namespace hangar::operators
