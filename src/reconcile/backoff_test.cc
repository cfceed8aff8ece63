#include "reconcile/backoff.h"

#include "base/time.h"

#include <gtest/gtest.h>

#include <chrono>

namespace hangar::reconcile {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const kube::ObjectKey kKey{"ns", "a"};

TEST(Backoff, DoublesFromTheMinimumAndAddsAtMostAQuarter) {
  Backoff backoff({}, /*seed=*/1);
  Duration plain = milliseconds(5);
  for (int failure = 0; failure < 15; ++failure, plain *= 2) {
    const Duration delay = backoff.failed(kKey);
    EXPECT_GE(delay, plain);
    EXPECT_LE(delay, plain + plain / 4);
  }
}

TEST(Backoff, StaysAtTheMaximumHoweverOftenItFails) {
  Backoff backoff({}, /*seed=*/1);
  bool differs = false;
  Duration last{};
  for (int failure = 0; failure < 100'000; ++failure) {
    const Duration delay = backoff.failed(kKey);
    ASSERT_GE(delay, milliseconds(5));
    ASSERT_LE(delay, seconds(1000));
    if (failure > 30) {
      ASSERT_GE(delay, seconds(799));
      differs = differs || (delay != last && last > Duration::zero());
      last = delay;
    }
  }
  EXPECT_TRUE(differs) << "keys at the maximum must not come back in step";
}

// The most attempts within `span` of the first failure of a key that always fails.
int tries_within(Duration span, Backoff::Failure failure) {
  Backoff backoff({}, /*seed=*/1);
  int tries = 0;
  for (Duration at{}; at <= span; at += backoff.failed(kKey, failure))
    ++tries;
  return tries;
}

TEST(Backoff, AFailureThatWillRepeatIsTriedSeldomFromTheStart) {
  EXPECT_GE(tries_within(seconds(1), Backoff::Failure::Passing), 7);

  EXPECT_LE(tries_within(seconds(1), Backoff::Failure::Repeating), 2);
  EXPECT_LE(tries_within(seconds(60), Backoff::Failure::Repeating), 6);
}

TEST(Backoff, AFailureThatWillRepeatEndsAtTheSameMaximum) {
  Backoff backoff({}, /*seed=*/1);
  for (int failure = 0; failure < 2000; ++failure)
    ASSERT_LE(backoff.failed(kKey, Backoff::Failure::Repeating), seconds(1000));
  EXPECT_GE(backoff.failed(kKey, Backoff::Failure::Repeating), seconds(799));
}

TEST(Backoff, BeginsAnewAfterASuccess) {
  Backoff backoff({}, /*seed=*/1);
  for (int failure = 0; failure < 10; ++failure)
    (void)backoff.failed(kKey);

  backoff.forget(kKey);

  EXPECT_EQ(backoff.key_count(), 0U);
  EXPECT_LT(backoff.failed(kKey), milliseconds(10));
}

TEST(Backoff, CountsEachKeyAlone) {
  Backoff backoff({}, /*seed=*/1);
  for (int failure = 0; failure < 10; ++failure)
    (void)backoff.failed(kKey);

  EXPECT_LT(backoff.failed({"ns", "b"}), milliseconds(10));
}

}  // namespace
}  // namespace hangar::reconcile
