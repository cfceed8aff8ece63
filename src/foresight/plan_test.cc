#include "foresight/plan.h"

#include <gtest/gtest.h>

#include <string>

namespace hangar::foresight {
namespace {

constexpr Terms kFast{.break_even = 1, .resume = 0.001F, .latency = 0.02F, .idle_after = 1};
constexpr Terms kSlow{.break_even = 1, .resume = 0.1F, .latency = 0.02F, .idle_after = 1};

TEST(Plan, OfAGuestThatResumesFastSleepsUntilTheWakeUnlessThatIsNear) {
  const Plan far = plan_for({.at = 5, .spread = 0.1F}, kFast);
  EXPECT_FLOAT_EQ(far.keep, 0);
  EXPECT_FALSE(far.loads_ahead());

  const Plan near = plan_for({.at = 0.5F, .spread = 0.1F}, kFast);
  EXPECT_FLOAT_EQ(near.keep, 0.6F);
}

TEST(Plan, OfAGuestThatResumesSlowlyIsLoadedBeforeTheFirstMomentAtWhichItMayWake) {
  const Plan plan = plan_for({.at = 5, .spread = 0.1F}, kSlow);
  ASSERT_TRUE(plan.loads_ahead());
  EXPECT_LT(plan.load_at, 4.9F - kSlow.resume);
  EXPECT_FLOAT_EQ(plan.drop_at, 5.1F);
}

TEST(Plan, DoesNotSleepForLessThanSleepingCosts) {
  const Plan plan = plan_for({.at = 1, .spread = 0.1F}, kSlow);
  EXPECT_FALSE(plan.loads_ahead());
  EXPECT_FLOAT_EQ(plan.keep, 1.1F);
}

TEST(Plan, OfAGuestThatCannotBeLoadedAheadStaysInMemoryUnlessTheWakeIsFar) {
  Terms terms = kSlow;
  terms.can_load_ahead = false;
  EXPECT_FLOAT_EQ(plan_for({.at = 5, .spread = 0.1F}, terms).keep, 5.1F);
  EXPECT_FALSE(plan_for({.at = 5, .spread = 0.1F}, terms).loads_ahead());

  const Plan far = plan_for({.at = kLatePrice + 2, .spread = 0.1F}, terms);
  EXPECT_FLOAT_EQ(far.keep, 0);
  EXPECT_FALSE(far.loads_ahead());
}

TEST(Plan, HasThePriceOfWhatItKeepsAndLoads) {
  constexpr Plan kWindow{.keep = 0.5F, .load_at = 4, .drop_at = 6};
  struct Row {
    std::string name;
    float gap;
    float cost;
    bool is_late;
  };
  for (const Row& row : {
           Row{.name = "still kept", .gap = 0.4F, .cost = 0.4F, .is_late = false},
           Row{.name = "before the window", .gap = 2, .cost = 1.5F, .is_late = true},
           Row{.name = "while it is loaded", .gap = 4.05F, .cost = 1.55F, .is_late = true},
           Row{.name = "in the window", .gap = 5, .cost = 2.5F, .is_late = false},
           Row{.name = "after the window", .gap = 9, .cost = 4.5F, .is_late = true},
       }) {
    SCOPED_TRACE(row.name);
    const Price price = price_of(kWindow, row.gap, kSlow);
    EXPECT_NEAR(price.cost, row.cost, 1e-4);
    EXPECT_EQ(price.is_late, row.is_late);
    EXPECT_FALSE(price_of(kWindow, row.gap, kFast).is_late);
  }
}

}  // namespace
}  // namespace hangar::foresight
