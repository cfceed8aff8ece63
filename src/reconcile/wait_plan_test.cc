#include "reconcile/wait_plan.h"

#include "base/time.h"
#include "budget/accounts.h"
#include "budget/consumer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace hangar::reconcile {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const Instant kNow = Instant() + std::chrono::hours(1);
const budget::Shortage kShortage{
    .level = budget::Shortage::Level::Tenant, .wanted_bytes = 10, .limit_bytes = 20};

budget::Consumer consumer(std::string namespace_name, std::string name = "operator/a") {
  return {.tenant = budget::Tenant::of_namespace(std::move(namespace_name)),
          .name = std::move(name)};
}

TEST(WaitPlan, TellsAWaitOnceItIsLong) {
  WaitPlan plan;
  plan.update(consumer("a"), &kShortage, kNow);

  EXPECT_TRUE(plan.look(kNow + kWaitToldAfter - milliseconds(1)).empty());
  EXPECT_EQ(plan.told(consumer("a")), nullptr);
  EXPECT_EQ(plan.next_look(), kNow + kWaitToldAfter);
  EXPECT_EQ(plan.look(kNow + kWaitToldAfter), std::vector{consumer("a")});
  ASSERT_NE(plan.told(consumer("a")), nullptr);
  EXPECT_EQ(*plan.told(consumer("a")), kShortage);
  EXPECT_TRUE(plan.look(kNow + seconds(60)).empty()) << "once";
  EXPECT_FALSE(plan.next_look().has_value());
}

TEST(WaitPlan, ForgetsAShortWait) {
  WaitPlan plan;
  plan.update(consumer("a"), &kShortage, kNow);
  plan.update(consumer("a"), nullptr, kNow + kWaitToldAfter / 2);

  EXPECT_TRUE(plan.look(kNow + seconds(60)).empty());
  EXPECT_EQ(plan.size(), 0U);
}

TEST(WaitPlan, TellsTheEndOfAWaitUnlessAnotherFollowsAtOnce) {
  WaitPlan plan;
  plan.update(consumer("a"), &kShortage, kNow);
  ASSERT_EQ(plan.look(kNow + seconds(1)).size(), 1U);

  plan.update(consumer("a"), nullptr, kNow + seconds(2));
  plan.update(consumer("a"), &kShortage, kNow + seconds(2) + milliseconds(10));
  EXPECT_TRUE(plan.look(kNow + seconds(10)).empty());
  EXPECT_NE(plan.told(consumer("a")), nullptr);

  plan.update(consumer("a"), nullptr, kNow + seconds(20));
  EXPECT_EQ(plan.look(kNow + seconds(21)), std::vector{consumer("a")});
  EXPECT_EQ(plan.told(consumer("a")), nullptr);
  EXPECT_EQ(plan.size(), 0U);
}

TEST(WaitPlan, AnotherWaitOfTheSameConsumerBeginsNoNewTime) {
  WaitPlan plan;
  plan.update(consumer("a"), &kShortage, kNow);
  plan.update(consumer("a"), &kShortage, kNow + milliseconds(900));

  EXPECT_EQ(plan.look(kNow + kWaitToldAfter).size(), 1U);
}

TEST(WaitPlan, JoinsWaitsWithLittleBetweenThem) {
  WaitPlan plan(seconds(10), seconds(1));
  Instant now = kNow;
  for (; now < kNow + seconds(10); now += milliseconds(500)) {
    plan.update(consumer("a"), &kShortage, now);
    EXPECT_TRUE(plan.look(now).empty());
    plan.update(consumer("a"), nullptr, now + milliseconds(400));
  }
  plan.update(consumer("a"), &kShortage, now);
  EXPECT_EQ(plan.look(now), std::vector{consumer("a")}) << "it waits most of the time";

  plan.update(consumer("b"), &kShortage, now);
  plan.update(consumer("b"), nullptr, now + seconds(9));
  EXPECT_EQ(plan.next_look(), now + seconds(10));
  plan.update(consumer("b"), &kShortage, now + seconds(11));
  EXPECT_TRUE(plan.look(now + seconds(12)).empty()) << "another wait";
  plan.update(consumer("b"), nullptr, now + seconds(13));
  EXPECT_TRUE(plan.look(now + seconds(14)).empty());
  EXPECT_EQ(plan.size(), 1U) << "only what was told is kept";
}

TEST(WaitPlan, BoundsTheWritesOfANamespaceAndOfNoOther) {
  WaitPlan plan;
  const auto burst = static_cast<std::size_t>(kWaitTells.burst);
  for (std::size_t index = 0; index < 3 * burst; ++index)
    plan.update(consumer("crowd", fmt::format("operator/{:03}", index)), &kShortage, kNow);
  plan.update(consumer("other"), &kShortage, kNow);

  EXPECT_EQ(plan.look(kNow + seconds(1)).size(), burst + 1);
  EXPECT_NE(plan.told(consumer("other")), nullptr);
  EXPECT_EQ(plan.look(kNow + seconds(2)).size(), 1U) << "as many as the rate allows";
}

}  // namespace
}  // namespace hangar::reconcile
