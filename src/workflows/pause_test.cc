#include "workflows/pause.h"

#include <gtest/gtest.h>

#include <chrono>

namespace hangar::workflows {
namespace {

using namespace std::chrono_literals;

const WallTime kNow = WallTime(1'800'000'000s);
const Error kTransient(ErrorKind::Unavailable, "no answer");
const Error kTerminal(ErrorKind::InvalidInput, "not a machine");

TEST(Pause, WithNothingToWaitForEndsTheReconcile) {
  const auto outcome = outcome_of({}, kNow);

  ASSERT_TRUE(outcome.has_value());
  EXPECT_FALSE(outcome->requeue_after.has_value());
}

TEST(Pause, EndsJustAfterWhatTheLedgerWaitsFor) {
  const auto outcome = outcome_of({.until = kNow + 5s}, kNow);

  ASSERT_TRUE(outcome.has_value());
  EXPECT_EQ(outcome->requeue_after, Duration(5s + 1ms));
}

TEST(Pause, EndsAtTheEarlierOfBothTimes) {
  EXPECT_EQ(outcome_of({.until = kNow + 5s, .look_again = kNow + 2s}, kNow)->requeue_after,
            Duration(2s + 1ms));
  EXPECT_EQ(outcome_of({.until = kNow + 2s, .look_again = kNow + 5s}, kNow)->requeue_after,
            Duration(2s + 1ms));
  EXPECT_EQ(outcome_of({.look_again = kNow + 5s}, kNow)->requeue_after, Duration(5s + 1ms));
}

// A delay of zero would mean the back-off of a failure.
TEST(Pause, IsNeverEmptyForATimeThatHasPassed) {
  EXPECT_EQ(outcome_of({.until = kNow - 1h}, kNow)->requeue_after, Duration(1ms));
  EXPECT_EQ(outcome_of({.until = kNow}, kNow)->requeue_after, Duration(1ms));
}

TEST(Pause, AFaultThatIsRetriedComesBeforeAnyTime) {
  for (const Pause& pause :
       {Pause{.retry = kTransient}, Pause{.until = kNow + 5s, .retry = kTransient},
        Pause{.look_again = kNow + 5s, .retry = kTransient}}) {
    const auto outcome = outcome_of(pause, kNow);

    ASSERT_FALSE(outcome.has_value());
    EXPECT_EQ(outcome.error().kind(), ErrorKind::Unavailable);
    EXPECT_EQ(outcome.error().message(), "no answer");
  }
}

TEST(Pause, ATimeIsKeptAlthoughTheMachineCannotDecide) {
  EXPECT_EQ(outcome_of({.until = kNow + 5s, .retry = kTerminal}, kNow)->requeue_after,
            Duration(5s + 1ms));
  EXPECT_EQ(outcome_of({.look_again = kNow + 5s, .retry = kTerminal}, kNow)->requeue_after,
            Duration(5s + 1ms));
}

TEST(Pause, AMachineThatCannotDecideIsAnErrorWithNothingElseToWaitFor) {
  const auto outcome = outcome_of({.retry = kTerminal}, kNow);

  ASSERT_FALSE(outcome.has_value());
  EXPECT_EQ(outcome.error().kind(), ErrorKind::InvalidInput);
}

}  // namespace
}  // namespace hangar::workflows
