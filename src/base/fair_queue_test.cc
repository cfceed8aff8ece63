#include "base/fair_queue.h"

#include "base/consumer.h"
#include "base/result.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>

namespace hangar {
namespace {

using Queue = FairQueue<std::string>;

Consumer consumer(std::string namespace_name, std::string name = "operator/a") {
  return {.tenant = Tenant::of_namespace(std::move(namespace_name)), .name = std::move(name)};
}

Queue::Ticket push(Queue& queue, const Consumer& whose, std::string item, Demand demand = {}) {
  const auto ticket = queue.push(whose, std::move(item), demand);
  EXPECT_TRUE(ticket) << ticket.error().message();
  return ticket.value_or(Queue::Ticket());
}

// Takes everything that waits, each done before the next is taken.
std::string take_all(Queue& queue) {
  std::string order;
  while (const auto taken = queue.pop()) {
    order += taken->item;
    queue.done(taken->consumer);
  }
  return order;
}

TEST(FairQueue, GivesTenantsTheirTurnHoweverMuchOneOfThemHasQueued) {
  Queue queue;
  for (int index = 0; index < 5; ++index)
    push(queue, consumer("greedy"), "g");
  push(queue, consumer("team"), "t");
  push(queue, consumer("other"), "o");

  EXPECT_EQ(take_all(queue), "gtogggg");
}

TEST(FairQueue, ATenantGainsNothingByHavingManyConsumers) {
  Queue queue;
  for (int index = 0; index < 100; ++index)
    push(queue, consumer("greedy", "operator/" + std::to_string(index)), "g");
  for (int index = 0; index < 3; ++index)
    push(queue, consumer("team"), "t");

  EXPECT_EQ(take_all(queue).substr(0, 7), "gtgtgtg");
}

TEST(FairQueue, GivesTheConsumersOfOneTenantTheirTurn) {
  Queue queue;
  for (int index = 0; index < 3; ++index)
    push(queue, consumer("team", "operator/a"), "a");
  push(queue, consumer("team", "operator/b"), "b");

  EXPECT_EQ(take_all(queue), "abaa");
}

TEST(FairQueue, CountsWhatAnItemCosts) {
  Queue queue;
  for (int index = 0; index < 3; ++index)
    push(queue, consumer("large"), "L", {.cost = 30});
  for (int index = 0; index < 9; ++index)
    push(queue, consumer("small"), "s", {.cost = 10});

  EXPECT_EQ(take_all(queue), "LsssLsssLsss");
}

TEST(FairQueue, CountsCostThatBecomesKnownAfterTheService) {
  Queue queue;
  for (int index = 0; index < 6; ++index) {
    push(queue, consumer("burner"), "b");
    push(queue, consumer("team"), "t");
  }

  std::string order;
  while (const auto taken = queue.pop()) {
    order += taken->item;
    queue.done(taken->consumer, taken->item == "b" ? 2 : 0);
  }

  EXPECT_EQ(order, "btttbtttbbbb");
}

// Each tenant has one item at a time, as operators do: the queue is empty whenever one of them
// is served.
TEST(FairQueue, RemembersWhatWasUsedWhileNothingWaits) {
  Queue queue;
  std::map<std::string, int> served;
  push(queue, consumer("burner"), "b");
  push(queue, consumer("team"), "t");
  std::optional<Queue::Taken> under_way = queue.pop();
  for (int round = 0; round < 100; ++round) {
    ++served[under_way->item];
    const std::optional<Queue::Taken> next = queue.pop();  // The other tenant's; none waits.
    ASSERT_TRUE(next);
    ASSERT_TRUE(queue.is_empty());
    queue.done(under_way->consumer, under_way->item == "b" ? 9 : 0);
    push(queue, under_way->consumer, under_way->item);
    push(queue, next->consumer, next->item);
    queue.done(next->consumer, next->item == "b" ? 9 : 0);
    ++served[next->item];
    under_way = queue.pop();
  }

  EXPECT_EQ(served["t"], 100);
  EXPECT_EQ(under_way->item, "t");
}

TEST(FairQueue, ServesATenantNextThatHasNotBeenServedLately) {
  Queue queue;
  for (const std::string_view name : {"a", "b", "c"}) {
    for (int index = 0; index < 100; ++index)
      push(queue, consumer(std::string(name)), std::string(name));
  }
  for (int index = 0; index < 100; ++index)
    queue.done(queue.pop()->consumer, 10);

  push(queue, consumer("new"), "new");

  EXPECT_EQ(queue.pop()->item, "new");
}

TEST(FairQueue, UseWithoutCompetitionIsNoDebt) {
  Queue queue;
  for (int index = 0; index < 1000; ++index) {
    push(queue, consumer("alone"), "a");
    queue.done(queue.pop()->consumer, 1'000'000);
  }
  EXPECT_EQ(queue.tenant_count(), 0U);

  for (int index = 0; index < 3; ++index) {
    push(queue, consumer("alone"), "a");
    push(queue, consumer("team"), "t");
  }
  EXPECT_EQ(take_all(queue), "atatat");
}

TEST(FairQueue, TheHostComesFirst) {
  Queue queue;
  push(queue, consumer("team"), "t");
  push(queue, {.tenant = Tenant::host(), .name = "lease"}, "h", {.cost = 1000});
  push(queue, {.tenant = Tenant::host(), .name = "lease"}, "h", {.cost = 1000});

  EXPECT_EQ(take_all(queue), "hht");
}

TEST(FairQueue, NoNameIsTheHost) {
  for (const std::string name : {"", "(host)", "host", "(cluster)"}) {
    EXPECT_NE(Tenant::of_namespace(name), Tenant::host());
    EXPECT_FALSE(Tenant::of_namespace(name).is_host());
  }
}

TEST(FairQueue, RankCountsWithinATenantOnly) {
  Queue queue;
  push(queue, consumer("a", "1"), "x", {.rank = 2});
  push(queue, consumer("a", "2"), "y", {.rank = 1});
  push(queue, consumer("b", "1"), "z", {.rank = 9});
  push(queue, consumer("a", "1"), "w", {.rank = 0});

  EXPECT_EQ(take_all(queue), "wzyx");
}

TEST(FairQueue, PassesOverThoseThatMayNot) {
  Queue queue;
  push(queue, consumer("a"), "x");
  push(queue, consumer("b", "1"), "y");
  push(queue, consumer("b", "2"), "z");

  const auto taken =
      queue.pop([](const Tenant& tenant) { return tenant.namespace_name() == "b"; },
                [](const Consumer& whose, const std::string&) { return whose.name == "2"; });

  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->item, "z");
  EXPECT_FALSE(queue.pop([](const Tenant&) { return false; }));
  EXPECT_EQ(queue.pop_of(consumer("b").tenant, [](const auto&...) { return true; })->item, "y");
}

TEST(FairQueue, BoundsHowManyWait) {
  Queue queue({.waiting_per_consumer_max = 2, .waiting_per_tenant_max = 3});
  push(queue, consumer("team", "operator/a"), "a");
  push(queue, consumer("team", "operator/a"), "a");
  const auto third = queue.push(consumer("team", "operator/a"), "a");
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().kind(), ErrorKind::LimitExceeded);
  EXPECT_EQ(third.error().message(), "2 of operator/a wait already, which is the limit");

  push(queue, consumer("team", "operator/b"), "b");
  const auto fourth = queue.push(consumer("team", "operator/c"), "c");
  ASSERT_FALSE(fourth);
  EXPECT_EQ(fourth.error().message(), "3 of namespace team wait already, which is the limit");
  push(queue, consumer("other", "operator/c"), "o");

  EXPECT_EQ(take_all(queue), "aoba");
}

TEST(FairQueue, WhatIsRemovedIsNotServed) {
  Queue queue;
  push(queue, consumer("team", "a"), "x");
  const Queue::Ticket ticket = push(queue, consumer("team", "a"), "y");
  const Queue::Ticket other = push(queue, consumer("team", "b"), "z");

  EXPECT_EQ(queue.remove(consumer("team", "a"), ticket), "y");
  EXPECT_EQ(queue.remove(consumer("team", "b"), other), "z");
  EXPECT_EQ(queue.remove(consumer("team", "b"), other), std::nullopt);
  EXPECT_EQ(queue.remove(consumer("nobody"), other), std::nullopt);
  EXPECT_EQ(take_all(queue), "x");
  EXPECT_EQ(queue.tenant_count(), 0U);
}

// Random work of tenants that always have more to do: their shares differ by at most the cost of
// one item, and no tenant is forgotten.
TEST(FairQueue, SharesAreEqualWhateverTheItemsCost) {
  const std::uint32_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  constexpr std::uint64_t kCostMax = 100;
  Queue queue;
  std::map<std::string, std::uint64_t> given;
  std::map<std::string, std::uint64_t> costs;
  for (const std::string name : {"a", "b", "c", "d", "e"}) {
    costs[name] = 1 + random() % kCostMax;
    push(queue, consumer(name), name);
    push(queue, consumer(name, "operator/b"), name);
  }
  for (int index = 0; index < 5000; ++index) {
    const auto taken = queue.pop();
    const std::uint64_t expected = random() % 2;
    given[taken->item] += 1 + costs[taken->item];
    push(queue, taken->consumer, taken->item);
    queue.charge(taken->consumer, expected);
    queue.done(taken->consumer, costs[taken->item] - expected);
  }

  const auto [least, most] =
      std::ranges::minmax_element(given, {}, [](const auto& entry) { return entry.second; });
  EXPECT_LE(most->second - least->second, 2 * (kCostMax + 1));
  EXPECT_EQ(given.size(), 5U);
}

}  // namespace
}  // namespace hangar
