#include "base/period_sum.h"

#include "base/time.h"

#include <gtest/gtest.h>

#include <chrono>

namespace hangar {
namespace {

using std::chrono::seconds;

const Instant kNow = Instant() + seconds(100);

TEST(PeriodSum, IsThatOfTheLastWholePeriod) {
  PeriodSum sum(seconds(15));
  EXPECT_TRUE(sum.is_zero(kNow));

  sum.add(kNow, 3);
  sum.add(kNow + seconds(14), 4);
  EXPECT_EQ(sum.last(kNow + seconds(14)), 0U) << "the period is not over";
  EXPECT_EQ(sum.last(kNow + seconds(15)), 7U);

  sum.add(kNow + seconds(16), 5);
  EXPECT_EQ(sum.began(), kNow + seconds(15));
  EXPECT_EQ(sum.last(kNow + seconds(29)), 7U);
  EXPECT_EQ(sum.last(kNow + seconds(30)), 5U);
}

TEST(PeriodSum, IsZeroAfterAPeriodWithoutCounts) {
  PeriodSum sum(seconds(15));
  sum.add(kNow, 3);

  EXPECT_FALSE(sum.is_zero(kNow + seconds(29)));
  EXPECT_EQ(sum.last(kNow + seconds(30)), 0U);
  EXPECT_TRUE(sum.is_zero(kNow + seconds(30)));
}

}  // namespace
}  // namespace hangar
