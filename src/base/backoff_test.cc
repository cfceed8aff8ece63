#include "base/backoff.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <limits>

namespace hangar {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(ExponentialBackoff, DoublesFromTheMinimumUpToTheMaximum) {
  const ExponentialBackoff backoff{.min = seconds(1), .max = seconds(10)};

  EXPECT_EQ(backoff.delay(0), seconds(1));
  EXPECT_EQ(backoff.delay(1), seconds(2));
  EXPECT_EQ(backoff.delay(3), seconds(8));
  EXPECT_EQ(backoff.delay(4), seconds(10));
}

TEST(ExponentialBackoff, StaysAtTheMaximumHoweverOftenItFails) {
  const ExponentialBackoff backoff{.min = seconds(1), .max = hours(1000), .factor = 1.5};

  EXPECT_EQ(backoff.delay(1'000'000), hours(1000));
  EXPECT_EQ(backoff.delay(std::numeric_limits<std::uint64_t>::max()), hours(1000));
}

TEST(ExponentialBackoff, AddsItsShareOfJitterAndNeverPassesTheMaximum) {
  const ExponentialBackoff backoff{.min = milliseconds(800), .max = seconds(30), .jitter = 1};

  EXPECT_EQ(backoff.delay(1, 0), milliseconds(1600));
  EXPECT_EQ(backoff.delay(1, 0.5), milliseconds(2400));
  EXPECT_EQ(backoff.delay(100, 0), seconds(15));
  EXPECT_EQ(backoff.delay(100, 1), seconds(30));
}

TEST(ExponentialBackoff, KeepsToAMaximumBelowItsMinimum) {
  const ExponentialBackoff backoff{.min = seconds(5), .max = seconds(2), .jitter = 0.25};

  EXPECT_EQ(backoff.delay(0), seconds(2));
  EXPECT_EQ(backoff.delay(7, 1), seconds(2));
}

TEST(ExponentialBackoff, TakesARandomNumberOutOfRangeForItsNearestBound) {
  EXPECT_EQ(with_jitter(seconds(2), 0.5, 7), seconds(3));
  EXPECT_EQ(with_jitter(seconds(2), 0.5, -7), seconds(2));
}

}  // namespace
}  // namespace hangar
