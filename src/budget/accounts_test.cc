#include "budget/accounts.h"

#include "base/limits.h"
#include "budget/consumer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hangar::budget {
namespace {

using limits::kMiB;

Consumer consumer(std::string namespace_name, std::string name = "operator/a") {
  return {.tenant = Tenant::of_namespace(std::move(namespace_name)), .name = std::move(name)};
}

TEST(Accounts, HoldNoMoreThanTheirLimitAtAnyLevel) {
  Accounts accounts({.host_bytes_max = 100, .tenant_bytes_max = 60, .consumer_bytes_max = 40});
  const auto first = accounts.reserve(consumer("a"), 40);
  ASSERT_TRUE(first);

  const auto same = accounts.reserve(consumer("a"), 1);
  ASSERT_FALSE(same);
  EXPECT_EQ(same.error(), (Shortage{.level = Shortage::Level::Consumer,
                                    .wanted_bytes = 1,
                                    .free_bytes = 0,
                                    .limit_bytes = 40}));
  const auto other = accounts.reserve(consumer("a", "operator/b"), 21);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().level, Shortage::Level::Tenant);
  EXPECT_EQ(other.error().free_bytes, 20U);
  const auto second = accounts.reserve(consumer("b"), 40);
  ASSERT_TRUE(second);
  const auto third = accounts.reserve(consumer("c"), 21);
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().level, Shortage::Level::Host);
  EXPECT_EQ(accounts.held_bytes(), 80U);
}

TEST(Accounts, HaveLimitsOfTheirOwnForTenants) {
  Accounts accounts({.host_bytes_max = 1000, .tenant_bytes_max = 100});
  accounts.limit_tenants({.others = {.bytes_max = 50, .set_by = "a"},
                          .namespaces = {{"wide", {.bytes_max = 500, .set_by = "b"}},
                                         {"narrow", {.bytes_max = 10, .set_by = "c"}}}});

  const auto other = accounts.reserve(consumer("other"), 51);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error(), (Shortage{.level = Shortage::Level::Tenant,
                                     .wanted_bytes = 51,
                                     .free_bytes = 50,
                                     .limit_bytes = 50,
                                     .limited_by = "a"}));
  EXPECT_EQ(to_text(other.error()),
            "51 bytes are needed, 50 bytes of the 50 bytes of its namespace (a) are free");
  EXPECT_EQ(accounts.reserve(consumer("narrow"), 11).error().limited_by, "c");
  const auto wide = accounts.reserve(consumer("wide"), 101);
  ASSERT_FALSE(wide) << "the host's setting is the outer wall";
  EXPECT_EQ(wide.error().limit_bytes, 100U);
  EXPECT_EQ(wide.error().limited_by, "");
  EXPECT_TRUE(accounts.reserve(consumer(""), 100)) << "objects of the cluster are nobody's tenant";
  EXPECT_EQ(accounts.limit_of(Tenant::of_namespace("narrow")).bytes_max, 10U);
}

TEST(Accounts, TakeNothingBackWhenALimitIsLowered) {
  Accounts accounts({.host_bytes_max = 1000});
  int freed = 0;
  accounts.set_on_freed([&freed] { ++freed; });
  auto held = accounts.reserve(consumer("a"), 100);
  ASSERT_TRUE(held);

  accounts.limit_tenants({.others = {.bytes_max = 40, .set_by = "p"}});
  EXPECT_EQ(accounts.held_bytes(consumer("a").tenant), 100U);
  const auto grown = held->resize(101);
  ASSERT_FALSE(grown);
  EXPECT_EQ(grown.error().free_bytes, 0U);
  EXPECT_EQ(grown.error().limited_by, "p");
  ASSERT_TRUE(held->resize(30));
  EXPECT_TRUE(held->resize(40));
  EXPECT_FALSE(held->resize(41));

  const int before = freed;
  accounts.limit_tenants({.others = {.bytes_max = 40, .set_by = "p"}});
  EXPECT_EQ(freed, before) << "nothing has changed";
  accounts.limit_tenants({});
  EXPECT_EQ(freed, before + 1) << "who waits is looked at again";
  EXPECT_TRUE(held->resize(41));
}

TEST(Accounts, GiveBackWhatEnds) {
  Accounts accounts({.host_bytes_max = 100});
  {
    const auto held = accounts.reserve(consumer("a"), 100);
    ASSERT_TRUE(held);
    EXPECT_EQ(accounts.held_bytes(consumer("a")), 100U);
    EXPECT_EQ(accounts.held_bytes(consumer("a").tenant), 100U);
    ASSERT_EQ(accounts.holdings().size(), 1U);
  }
  EXPECT_EQ(accounts.held_bytes(), 0U);
  EXPECT_TRUE(accounts.holdings().empty());
  EXPECT_TRUE(accounts.reserve(consumer("b"), 100));
}

TEST(Accounts, AReservationIsAsItWasWhenItCannotGrow) {
  Accounts accounts({.host_bytes_max = 100});
  auto held = accounts.reserve(consumer("a"), 10);
  ASSERT_TRUE(held);

  EXPECT_TRUE(held->resize(100));
  const auto more = held->resize(101);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().wanted_bytes, 1U);
  EXPECT_EQ(held->bytes(), 100U);
  EXPECT_EQ(accounts.held_bytes(), 100U);

  EXPECT_TRUE(held->resize(0));
  EXPECT_EQ(accounts.held_bytes(), 0U);
  EXPECT_TRUE(held->resize(5));
}

TEST(Accounts, AReservationThatIsReplacedIsGivenBack) {
  Accounts accounts({});
  auto held = accounts.reserve(consumer("a"), 10);
  ASSERT_TRUE(held);
  std::optional<Reservation> kept(*std::move(held));

  *kept = *accounts.reserve(consumer("b"), 3);

  EXPECT_EQ(accounts.held_bytes(), 3U);
  EXPECT_EQ(accounts.held_bytes(consumer("a")), 0U);
  EXPECT_EQ(kept->bytes(), 3U);
}

TEST(Accounts, NoSumOverflows) {
  Accounts accounts({.host_bytes_max = 100});
  const auto held = accounts.reserve(consumer("a"), 100);
  ASSERT_TRUE(held);

  EXPECT_FALSE(accounts.reserve(consumer("a"), Accounts::kUnlimited));
  const auto other = accounts.reserve(consumer("b"), Accounts::kUnlimited);
  ASSERT_FALSE(other);
  EXPECT_TRUE(other.error().is_final());
  EXPECT_EQ(accounts.held_bytes(), 100U);
}

TEST(Accounts, TheHostIsBoundedByTheLimitOfAll) {
  Accounts accounts({.host_bytes_max = 100, .tenant_bytes_max = 10, .consumer_bytes_max = 10});
  const Consumer host{.tenant = Tenant::host(), .name = "cache"};

  EXPECT_TRUE(accounts.reserve(host, 100));
  EXPECT_FALSE(accounts.reserve(host, 101));
}

TEST(Accounts, WhatATenantIsAssuredOfIsNotRefusedForWhatOthersHold) {
  Accounts accounts({.host_bytes_max = 100, .tenant_bytes_assured = 10});
  const auto all = accounts.reserve(consumer("greedy"), 100);
  ASSERT_TRUE(all);

  auto assured = accounts.reserve(consumer("modest"), 10);
  ASSERT_TRUE(assured);
  EXPECT_EQ(assured->resize(11).error().level, Shortage::Level::Host);
  EXPECT_EQ(accounts.reserve(consumer("modest"), 1).error().free_bytes, 0U);
  EXPECT_FALSE(accounts.reserve({.tenant = Tenant::host(), .name = "cache"}, 1));
  EXPECT_FALSE(accounts.reserve(consumer("greedy"), 1));
}

TEST(Accounts, WhatIsKeptIsForThoseWhoMayUseItOnly) {
  Accounts accounts({.host_bytes_max = 100, .kept_bytes = 20});
  const auto usual = accounts.reserve(consumer("a"), 80);
  ASSERT_TRUE(usual);

  const auto more = accounts.reserve(consumer("b"), 1);
  ASSERT_FALSE(more);
  EXPECT_EQ(
      more.error(),
      (Shortage{
          .level = Shortage::Level::Host, .wanted_bytes = 1, .free_bytes = 0, .limit_bytes = 80}));
  Consumer review = consumer("b", "admission/a");
  review.may_use_kept = true;
  auto kept = accounts.reserve(review, 15);
  ASSERT_TRUE(kept);
  EXPECT_FALSE(kept->resize(21)) << "there is no more for anybody";
  EXPECT_TRUE(kept->resize(20));
}

TEST(Accounts, WhatMayUseWhatIsKeptTakesNothingFromOthersBesides) {
  Accounts accounts({.host_bytes_max = 100, .kept_bytes = 20});
  Consumer review = consumer("b", "admission/a");
  review.may_use_kept = true;
  std::optional<Reservation> first = accounts.reserve(review, 50).value();
  const auto usual = accounts.reserve(consumer("a"), 50);
  ASSERT_TRUE(usual) << "its bytes may lie anywhere";
  EXPECT_FALSE(accounts.reserve(consumer("a"), 1));
  first.reset();
  EXPECT_TRUE(accounts.reserve(consumer("a"), 30));
  EXPECT_FALSE(accounts.reserve(consumer("a"), 31));
}

TEST(Accounts, HaveRoomForExactlyWhatCanBeReserved) {
  std::mt19937 dice(20261129);
  const auto up_to = [&dice](std::uint64_t most) { return dice() % (most + 1); };
  for (int round = 0; round < 300; ++round) {
    Accounts accounts({.host_bytes_max = 100 + up_to(100),
                       .tenant_bytes_max = 40 + up_to(100),
                       .tenant_bytes_assured = up_to(20),
                       .kept_bytes = up_to(30)});
    accounts.set_aside(up_to(1) * up_to(60));
    std::vector<Reservation> held;
    for (const char* const name : {"a", "b", "c", "a", "b"}) {
      if (auto one = accounts.reserve(consumer(name), up_to(60))) held.push_back(*std::move(one));
    }
    for (const auto aside : {Accounts::Aside::Left, Accounts::Aside::Taken}) {
      const auto reserve = [&](const std::string& name, std::uint64_t bytes) {
        const Consumer another = consumer(name, "operator/b");
        return (aside == Accounts::Aside::Left ? accounts.reserve(another, bytes)
                                               : accounts.reserve_aside(another, bytes))
            .has_value();
      };
      for (const char* const name : {"a", "b", "new"}) {
        const std::uint64_t room = accounts.room_of(Tenant::of_namespace(name), aside);
        EXPECT_TRUE(reserve(name, room)) << room << " bytes, round " << round;
        EXPECT_FALSE(reserve(name, room + 1)) << room << " bytes, round " << round;
      }
    }
  }
}

TEST(Accounts, TellWhenSomethingIsFree) {
  Accounts accounts({});
  int freed = 0;
  accounts.set_on_freed([&freed] { ++freed; });
  {
    auto held = accounts.reserve(consumer("a"), 10);
    ASSERT_TRUE(held);
    EXPECT_TRUE(held->resize(20));
    EXPECT_EQ(freed, 0);
    EXPECT_TRUE(held->resize(10));
    EXPECT_EQ(freed, 1);
  }
  EXPECT_EQ(freed, 2);
}

TEST(Accounts, CountFromManyThreads) {
  Accounts accounts({.host_bytes_max = 64});
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&accounts, thread] {
        for (int index = 0; index < 1000; ++index) {
          auto held = accounts.reserve(consumer(std::to_string(thread % 2)), 16);
          if (held) static_cast<void>(held->resize(32));
          EXPECT_LE(accounts.held_bytes(), 64U);
        }
      });
    }
  }
  EXPECT_EQ(accounts.held_bytes(), 0U);
}

TEST(Shortage, SaysWhatIsLackingAndWhere) {
  EXPECT_EQ(to_text({.level = Shortage::Level::Tenant,
                     .wanted_bytes = 64 * kMiB,
                     .free_bytes = 10 * kMiB,
                     .limit_bytes = 256 * kMiB}),
            "64 MiB are needed, 10 MiB of the 256 MiB of its namespace are free");
  EXPECT_EQ(to_text({.level = Shortage::Level::Host,
                     .wanted_bytes = 3 * limits::kKiB,
                     .free_bytes = 12,
                     .limit_bytes = 256 * kMiB}),
            "3 KiB are needed, 12 bytes of the 256 MiB of this host are free");
}

}  // namespace
}  // namespace hangar::budget
