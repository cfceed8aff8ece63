#include "budget/equal_rates.h"

#include "base/time.h"
#include "budget/consumer.h"
#include "budget/rates.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace hangar::budget {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const Tenant kGreedy = Tenant::of_namespace("greedy");

class EqualRatesTest : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kCores = 2;

  EqualRatesTest() { look(); }

  // One step of time, in which tenants use these parts of a core.
  void step(const std::map<Tenant, double>& cores) {
    now_ += EqualRates::kLookEvery;
    for (const auto& [tenant, part] : cores) {
      use_[tenant].total += std::chrono::duration_cast<Duration>(
          std::chrono::duration<double>(EqualRates::kLookEvery) * part);
    }
    look();
  }
  // A greedy tenant beside others that use little. Returns the time until it is slowed.
  std::optional<Duration> greedy_beside(int others, double cores, Duration during) {
    std::map<Tenant, double> uses = {{kGreedy, cores}};
    for (int other = 0; other < others; ++other)
      uses[Tenant::of_namespace("other-" + std::to_string(other))] = 0.01;
    const Instant began = now_;
    while (now_ - began < during) {
      step(uses);
      if (rates_.limit_of(kGreedy)) return now_ - began;
    }
    return std::nullopt;
  }
  // Work of the tenant had to wait since the last look.
  void brake(const Tenant& tenant) { use_[tenant].braked += milliseconds(1); }
  void look() {
    std::vector<Rates::TenantUse> uses;
    for (const auto& [tenant, use] : use_)
      uses.push_back({.tenant = tenant, .use = use});
    rates_.look(uses, are_short_, now_);
  }

  Instant now_ = Instant() + std::chrono::hours(1);
  std::optional<bool> are_short_ = true;
  std::map<Tenant, Rates::Use> use_;
  EqualRates rates_{kCores};
};

TEST_F(EqualRatesTest, ATenantThatTakesMuchMoreThanItsPartIsSlowedToItWithinTenSeconds) {
  const std::optional<Duration> after = greedy_beside(9, 0.85, seconds(10));

  ASSERT_TRUE(after.has_value());
  EXPECT_EQ(rates_.limit_of(kGreedy), (RateLimit{.millicores = 200}));
  EXPECT_FALSE(rates_.limit_of(Tenant::of_namespace("other-0")).has_value());
}

TEST_F(EqualRatesTest, OneThreadThatNeverStopsIsSlowedWhereThePartIsHalfACore) {
  EXPECT_TRUE(greedy_beside(3, 1, seconds(10)).has_value());
}

TEST_F(EqualRatesTest, ATenantThatIsAloneIsNeverSlowed) {
  EXPECT_EQ(greedy_beside(0, 2, seconds(600)), std::nullopt);
}

TEST_F(EqualRatesTest, OthersThatHaveDoneNothingForSomeTimeHaveNoPart) {
  step({{Tenant::of_namespace("other"), 0.5}});
  for (Duration rested{}; rested < EqualRates::kActiveFor; rested += EqualRates::kLookEvery)
    step({});

  EXPECT_EQ(greedy_beside(0, 2, seconds(600)), std::nullopt);
}

TEST_F(EqualRatesTest, NoTenantIsSlowedWhileNothingWaitsForAProcessor) {
  are_short_ = false;

  EXPECT_EQ(greedy_beside(9, 1.2, seconds(600)), std::nullopt);
}

TEST_F(EqualRatesTest, TenantsThatTakeMostOfTheProcessorsKeepOthersWaiting) {
  are_short_.reset();

  EXPECT_EQ(greedy_beside(9, 1.2, seconds(60)), std::nullopt);
  EXPECT_TRUE(greedy_beside(9, 1.9, seconds(10)).has_value());
}

TEST_F(EqualRatesTest, ATenantThatTakesItsPartIsNotSlowed) {
  EXPECT_EQ(greedy_beside(1, 1, seconds(600)), std::nullopt);
  EXPECT_EQ(greedy_beside(9, 0.2, seconds(600)), std::nullopt);
}

TEST_F(EqualRatesTest, EqualTenantsAreNotSlowed) {
  std::map<Tenant, double> uses;
  for (int at = 0; at < 50; ++at)
    uses[Tenant::of_namespace(std::to_string(at))] = 0.04;
  for (int at = 0; at < 300; ++at)
    step(uses);

  for (const auto& [tenant, part] : uses)
    EXPECT_FALSE(rates_.limit_of(tenant).has_value()) << tenant.label();
}

TEST_F(EqualRatesTest, ShortWorkLikeAStartIsNotSlowed) {
  const Tenant other = Tenant::of_namespace("other");
  step({{kGreedy, 1.2}, {other, 0.01}});
  EXPECT_FALSE(rates_.limit_of(kGreedy).has_value());
  for (int at = 0; at < 5; ++at)
    step({{kGreedy, 0}, {other, 0.01}});
  step({{kGreedy, 1.2}, {other, 0.01}});

  EXPECT_FALSE(rates_.limit_of(kGreedy).has_value());
}

TEST_F(EqualRatesTest, ShortBurstsAreNotSlowedHoweverSmallThePartIs) {
  std::map<Tenant, double> uses;
  for (int other = 0; other < 20; ++other)
    uses[Tenant::of_namespace(std::to_string(other))] = 0.01;
  for (int at = 0; at < 300; ++at) {
    // 300 ms of work every six seconds are half of its part.
    uses[kGreedy] = at % 3 == 0 ? 0.15 : 0;
    step(uses);
    ASSERT_FALSE(rates_.limit_of(kGreedy).has_value()) << at;
  }
}

TEST_F(EqualRatesTest, ATenantThatPausesIsSlowedLater) {
  std::map<Tenant, double> uses = {{kGreedy, 0}};
  for (int other = 0; other < 9; ++other)
    uses[Tenant::of_namespace(std::to_string(other))] = 0.01;
  for (const double cores : {0.45, 0.45, 0.1, 0.45, 0.45}) {
    uses[kGreedy] = cores;
    step(uses);
    EXPECT_FALSE(rates_.limit_of(kGreedy).has_value());
  }
  step(uses);

  EXPECT_TRUE(rates_.limit_of(kGreedy).has_value());
}

TEST_F(EqualRatesTest, ClusterScopedObjectsAreNotSlowedButHaveAPart) {
  const Tenant cluster = Tenant::of_namespace({});
  for (int at = 0; at < 30; ++at)
    step({{kGreedy, 1.5}, {cluster, 1.5}});

  EXPECT_FALSE(rates_.limit_of(cluster).has_value());
  EXPECT_EQ(rates_.limit_of(kGreedy), (RateLimit{.millicores = 1000}));
}

TEST_F(EqualRatesTest, StaysSlowedWhileItsWorkWaits) {
  ASSERT_TRUE(greedy_beside(9, 0.85, seconds(10)).has_value());
  // A turn of ten seconds is charged when it ends, and paid for long afterwards.
  for (int at = 0; at < 60; ++at) {
    brake(kGreedy);
    step({{kGreedy, 0}, {Tenant::of_namespace("other-0"), 0.01}});
    ASSERT_TRUE(rates_.limit_of(kGreedy).has_value()) << at;
  }
}

TEST_F(EqualRatesTest, IsFreeWhenItsWorkHasNotWaitedForSomeTime) {
  ASSERT_TRUE(greedy_beside(9, 0.85, seconds(10)).has_value());
  for (int at = 0; at < 5; ++at)
    step({{Tenant::of_namespace("other-0"), 0.01}});

  EXPECT_FALSE(rates_.limit_of(kGreedy).has_value());
}

TEST_F(EqualRatesTest, IsFreeWhenProcessorsHaveNotBeenShortForSomeTime) {
  ASSERT_TRUE(greedy_beside(9, 0.85, seconds(10)).has_value());
  are_short_ = false;
  const Instant began = now_;
  while (rates_.limit_of(kGreedy) && now_ - began < seconds(120)) {
    brake(kGreedy);
    step({{kGreedy, 0.2}, {Tenant::of_namespace("other-0"), 0.01}});
  }

  EXPECT_EQ(now_ - began, EqualRates::kQuietFor);
}

TEST_F(EqualRatesTest, IsFreeAsSoonAsItIsAlone) {
  ASSERT_TRUE(greedy_beside(1, 1.9, seconds(20)).has_value());
  for (Duration rested{}; rested < EqualRates::kActiveFor; rested += EqualRates::kLookEvery) {
    brake(kGreedy);
    step({{kGreedy, 1}});
  }

  EXPECT_FALSE(rates_.limit_of(kGreedy).has_value());
}

TEST_F(EqualRatesTest, APartIsNeverTooSmallToWorkWith) {
  ASSERT_TRUE(greedy_beside(200, 0.9, seconds(10)).has_value());

  EXPECT_EQ(rates_.limit_of(kGreedy), (RateLimit{.millicores = EqualRates::kPartMillicoresMin}));
}

// An operator that takes its next turn as soon as its last one has ended, beside others that do
// little.
struct Loop {
  std::string name;
  int others;
  std::uint64_t part_millicores;  // What the number of others makes it.
  double takes;                   // Of a core, while nothing slows it.
  Duration turn = milliseconds(10);

  friend std::ostream& operator<<(std::ostream& out, const Loop& loop) { return out << loop.name; }
};

class BrakeOfALoop : public ::testing::TestWithParam<Loop> {
 protected:
  static constexpr std::uint32_t kCores = 2;

  // How long after its begin a turn has to wait. The loop begins that long after a look.
  static std::optional<Duration> first_wait(Duration after_look) {
    const Loop& loop = GetParam();
    EqualRates equal(kCores);
    Rates rates;
    rates.limit_tenants([&](const Tenant& tenant) { return equal.limit_of(tenant); });
    const Instant began = Instant() + std::chrono::hours(1);
    const Instant loop_began = began + after_look;
    Instant turn = loop_began;
    for (Instant look = began; look < began + seconds(60);) {
      if (look <= turn) {
        for (int other = 0; other < loop.others; ++other)
          rates.charge(Tenant::of_namespace(std::to_string(other)), 1'000'000, look);
        equal.look(rates.uses(look), true, look);
        look += EqualRates::kLookEvery;
        continue;
      }
      if (rates.wait_of(kGreedy, turn) > Duration::zero()) {
        EXPECT_EQ(equal.limit_of(kGreedy), RateLimit{.millicores = loop.part_millicores});
        return turn - loop_began;
      }
      turn += std::chrono::duration_cast<Duration>(loop.turn / loop.takes);
      rates.charge(kGreedy, static_cast<std::uint64_t>(loop.turn.count()), turn);
    }
    return std::nullopt;
  }
};

TEST_P(BrakeOfALoop, MakesATurnWaitWithinTenSeconds) {
  for (Duration after_look = milliseconds(1); after_look < EqualRates::kLookEvery;
       after_look += milliseconds(100)) {
    const std::optional<Duration> wait = first_wait(after_look);
    ASSERT_TRUE(wait.has_value());
    EXPECT_LT(*wait, seconds(10));
  }
}

INSTANTIATE_TEST_SUITE_P(
    , BrakeOfALoop,
    ::testing::Values(
        Loop{.name = "TwiceATenth", .others = 20, .part_millicores = 100, .takes = 0.2},
        Loop{.name = "NineTenths", .others = 20, .part_millicores = 100, .takes = 0.9},
        Loop{.name = "BesideAThousand", .others = 999, .part_millicores = 100, .takes = 0.2},
        Loop{.name = "TwiceTwoElevenths", .others = 10, .part_millicores = 181, .takes = 0.37},
        Loop{.name = "OneThreadOfEleven", .others = 10, .part_millicores = 181, .takes = 0.85},
        Loop{.name = "OneThreadOfFour", .others = 3, .part_millicores = 500, .takes = 1},
        Loop{.name = "OneAndAHalfOfTwo", .others = 1, .part_millicores = 1000, .takes = 1.5},
        Loop{.name = "TwoThreadsOfTwo", .others = 1, .part_millicores = 1000, .takes = 1.9},
        Loop{.name = "LongTurns",
             .others = 10,
             .part_millicores = 181,
             .takes = 0.85,
             .turn = seconds(1)}),
    [](const auto& loop) { return loop.param.name; });

}  // namespace
}  // namespace hangar::budget
