#include "budget/rates.h"

#include "base/time.h"
#include "budget/consumer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace hangar::budget {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const Instant kNow = Instant() + std::chrono::hours(1);
const Tenant kBounded = Tenant::of_namespace("bounded");
const Tenant kFree = Tenant::of_namespace("free");

std::uint64_t nanoseconds(Duration duration) {
  return static_cast<std::uint64_t>(duration.count());
}

class RatesTest : public ::testing::Test {
 protected:
  RatesTest() {
    rates_.limit_tenants(
        [this](const Tenant& tenant) { return tenant == kBounded ? limit_ : std::nullopt; });
  }

  static RateLimit policy(std::uint64_t millicores) {
    return {.millicores = millicores, .set_by = "TenantPolicy bounds"};
  }
  static RateLimit equal_part(std::uint64_t millicores) { return {.millicores = millicores}; }

  std::optional<RateLimit> limit_ = policy(100);
  Rates rates_;
};

TEST_F(RatesTest, ATenantThatHasUsedMoreThanItsRateWaitsUntilTimeHasPaid) {
  EXPECT_EQ(rates_.wait_of(kBounded, kNow), Duration::zero());
  // A burst of 500 ms is free; it takes a second to earn 100 ms more.
  rates_.charge(kBounded, nanoseconds(milliseconds(600)), kNow);

  const Duration wait = rates_.wait_of(kBounded, kNow);
  EXPECT_GT(wait, seconds(1));
  EXPECT_LT(wait, milliseconds(1100));
  EXPECT_GT(rates_.wait_of(kBounded, kNow + seconds(1)), Duration::zero());
  EXPECT_EQ(rates_.wait_of(kBounded, kNow + wait), Duration::zero());
}

TEST_F(RatesTest, WorkThatSeveralWantIsPaidInEqualParts) {
  const std::vector<Tenant> watching = {kBounded, kFree, kFree};

  rates_.charge_equally(watching, nanoseconds(milliseconds(30)), kNow);
  rates_.charge_equally({}, nanoseconds(milliseconds(30)), kNow);

  EXPECT_EQ(rates_.use_of(kBounded, kNow).total, milliseconds(10));
  EXPECT_EQ(rates_.use_of(kFree, kNow).total, milliseconds(20));
}

TEST_F(RatesTest, OverALongTimeATenantUsesItsRate) {
  Instant now = kNow;
  Duration used{};
  while (now < kNow + seconds(600)) {
    const Duration wait = rates_.wait_of(kBounded, now);
    if (wait > Duration::zero()) {
      now += wait;
      continue;
    }
    rates_.charge(kBounded, nanoseconds(milliseconds(250)), now);
    used += milliseconds(250);
    now += milliseconds(250);
  }
  // A tenth of ten minutes, the burst, and one turn.
  EXPECT_LE(used, seconds(60) + milliseconds(750));
  EXPECT_GE(used, seconds(59));
}

TEST_F(RatesTest, OthersAndTheHostDoNotWait) {
  rates_.charge(kBounded, nanoseconds(seconds(60)), kNow);
  rates_.charge(kFree, nanoseconds(seconds(60)), kNow);
  rates_.charge(Tenant::host(), nanoseconds(seconds(60)), kNow);

  EXPECT_GT(rates_.wait_of(kBounded, kNow), Duration::zero());
  EXPECT_EQ(rates_.wait_of(kFree, kNow), Duration::zero());
  EXPECT_EQ(rates_.wait_of(Tenant::host(), kNow), Duration::zero());
  EXPECT_EQ(rates_.uses(kNow).size(), 2U) << "the host's work is not counted";
}

TEST_F(RatesTest, AnotherLimitBeginsAnewAndNoneFrees) {
  rates_.charge(kBounded, nanoseconds(seconds(60)), kNow);
  ASSERT_GT(rates_.wait_of(kBounded, kNow), Duration::zero());

  limit_.reset();
  EXPECT_EQ(rates_.wait_of(kBounded, kNow), Duration::zero());
  EXPECT_FALSE(rates_.use_of(kBounded, kNow).limit_millicores.has_value());
  limit_ = policy(50);
  EXPECT_EQ(rates_.wait_of(kBounded, kNow), Duration::zero());
  EXPECT_EQ(rates_.use_of(kBounded, kNow).limit_millicores, 50U);
  rates_.charge(kBounded, nanoseconds(milliseconds(300)), kNow);
  EXPECT_GT(rates_.wait_of(kBounded, kNow), milliseconds(900));
}

TEST_F(RatesTest, AnotherLimitNeitherForgivesWhatIsOwedNorGivesAnotherBurst) {
  EXPECT_EQ(rates_.wait_of(kBounded, kNow), Duration::zero());
  rates_.charge(kBounded, nanoseconds(milliseconds(1500)), kNow);
  // A second is owed, which takes ten at a tenth of a core.
  ASSERT_GT(rates_.wait_of(kBounded, kNow), seconds(10));

  limit_ = policy(200);
  const Duration wait = rates_.wait_of(kBounded, kNow);
  EXPECT_GT(wait, seconds(5));
  EXPECT_LT(wait, milliseconds(5100));
  limit_ = policy(300);
  EXPECT_GT(rates_.wait_of(kBounded, kNow + seconds(1)), seconds(2));
}

TEST_F(RatesTest, AnEqualPartBeginsWithoutABurst) {
  limit_ = equal_part(100);
  rates_.charge(kBounded, nanoseconds(milliseconds(20)), kNow);

  EXPECT_GT(rates_.wait_of(kBounded, kNow), milliseconds(200));
  EXPECT_EQ(rates_.wait_of(kBounded, kNow + milliseconds(211)), Duration::zero());
}

TEST_F(RatesTest, AnEqualPartAfterAnotherLimitBeginsWithoutABurst) {
  limit_ = policy(1000);
  rates_.charge(kBounded, nanoseconds(milliseconds(1)), kNow);
  ASSERT_EQ(rates_.wait_of(kBounded, kNow), Duration::zero());
  const Instant full = kNow + seconds(1);

  limit_ = equal_part(100);
  EXPECT_GT(rates_.wait_of(kBounded, full), Duration::zero());
  limit_ = equal_part(200);
  EXPECT_GT(rates_.wait_of(kBounded, full + kRateWindow), Duration::zero());
}

TEST_F(RatesTest, ShowsWhatIsUsedOverTime) {
  for (int second = 0; second < 15; ++second)
    rates_.charge(kFree, nanoseconds(milliseconds(300)), kNow + seconds(second));

  EXPECT_EQ(rates_.use_of(kFree, kNow + seconds(14)).millicores, 0U) << "not measured yet";
  const Rates::Use use = rates_.use_of(kFree, kNow + seconds(16));
  EXPECT_EQ(use.millicores, 300U);
  EXPECT_EQ(use.total, milliseconds(4500));
  EXPECT_EQ(rates_.use_of(kFree, kNow + seconds(31)).millicores, 0U) << "it rests";
}

TEST_F(RatesTest, CountsHowLongATenantWasBraked) {
  rates_.charge(kBounded, nanoseconds(milliseconds(600)), kNow);
  ASSERT_GT(rates_.wait_of(kBounded, kNow), Duration::zero());

  EXPECT_EQ(rates_.use_of(kBounded, kNow + seconds(1)).braked, seconds(1));
  const Duration in_all = rates_.use_of(kBounded, kNow + seconds(9)).braked;
  EXPECT_GT(in_all, seconds(1));
  EXPECT_LT(in_all, milliseconds(1100)) << "although nobody asks again";
  ASSERT_EQ(rates_.wait_of(kBounded, kNow + seconds(9)), Duration::zero());
  EXPECT_EQ(rates_.use_of(kBounded, kNow + seconds(20)).braked, in_all);
  EXPECT_EQ(rates_.use_of(kFree, kNow).braked, Duration::zero());
}

TEST_F(RatesTest, AreChargedByManyThreads) {
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([this] {
      for (int turn = 0; turn < 1000; ++turn)
        rates_.charge(kFree, 1000, kNow);
    });
  }
  threads.clear();

  EXPECT_EQ(rates_.use_of(kFree, kNow).total, milliseconds(4));
}

TEST_F(RatesTest, TellsOfEachWaitOfABrakedTenantOnceAndOfItsEnd) {
  std::vector<std::string> told;
  rates_.set_on_brake([&](const Consumer& consumer) {
    told.push_back(consumer.name + (rates_.brake_of(consumer) ? " waits" : " is done"));
  });
  const Consumer bounded{.tenant = kBounded, .name = "a"};
  const Consumer free{.tenant = kFree, .name = "b"};
  rates_.begin_wait(bounded);
  rates_.begin_wait(free);
  EXPECT_EQ(rates_.wait_of(kBounded, kNow), Duration::zero());
  EXPECT_TRUE(told.empty()) << "it waits for something else";

  rates_.charge(kBounded, nanoseconds(seconds(60)), kNow);
  rates_.charge(kFree, nanoseconds(seconds(60)), kNow);
  for (int look = 0; look < 3; ++look) {
    EXPECT_GT(rates_.wait_of(kBounded, kNow), Duration::zero());
    EXPECT_EQ(rates_.wait_of(kFree, kNow), Duration::zero());
  }
  EXPECT_EQ(told, std::vector<std::string>{"a waits"});
  EXPECT_EQ(rates_.brake_of(bounded), policy(100));

  rates_.end_wait(free);
  rates_.end_wait(bounded);
  EXPECT_EQ(told, (std::vector<std::string>{"a waits", "a is done"}));
  EXPECT_FALSE(rates_.brake_of(bounded).has_value());
}

}  // namespace
}  // namespace hangar::budget
