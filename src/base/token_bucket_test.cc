#include "base/token_bucket.h"

#include "base/time.h"

#include <gtest/gtest.h>

#include <chrono>

namespace hangar {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

TEST(TokenBucket, AllowsABurstAndThenItsRate) {
  TokenBucket bucket({.per_second = 2, .burst = 3});
  const Instant now = Instant() + hours(1);
  for (int taken = 0; taken < 3; ++taken)
    EXPECT_TRUE(bucket.try_take(now));
  EXPECT_FALSE(bucket.try_take(now));

  EXPECT_FALSE(bucket.try_take(now + milliseconds(400)));
  EXPECT_TRUE(bucket.try_take(now + milliseconds(500)));
  EXPECT_FALSE(bucket.try_take(now + milliseconds(500)));
}

TEST(TokenBucket, ReservesEachTokenOnce) {
  TokenBucket bucket({.per_second = 10, .burst = 1});
  const Instant now = Instant() + hours(1);

  EXPECT_EQ(bucket.reserve(now), Duration::zero());
  EXPECT_EQ(bucket.reserve(now), milliseconds(100));
  EXPECT_EQ(bucket.reserve(now), milliseconds(200));
  EXPECT_EQ(bucket.reserve(now + milliseconds(300)), Duration::zero());
}

TEST(TokenBucket, OwesWhatIsTakenInAnyCase) {
  TokenBucket bucket({.per_second = 10, .burst = 5});
  const Instant now = Instant() + hours(1);
  EXPECT_EQ(bucket.until_one(now), Duration::zero());

  bucket.take(now, 9);

  const Duration wait = bucket.until_one(now);
  EXPECT_GE(wait, milliseconds(500)) << "four are owed, and one is to be there";
  EXPECT_LT(wait, milliseconds(501));
  EXPECT_EQ(bucket.until_one(now + wait), Duration::zero());
}

}  // namespace
}  // namespace hangar
