#include "gateway/feed_memory.h"

#include "base/limits.h"
#include "base/result.h"
#include "budget/accounts.h"
#include "budget/consumer.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace hangar::gateway {
namespace {

using limits::kMiB;

std::unique_ptr<FeedMemory> feed_of(const std::shared_ptr<budget::Accounts>& accounts,
                                    const std::string& tenant) {
  return std::make_unique<FeedMemory>(
      accounts, budget::Consumer{.tenant = budget::Tenant::of_namespace(tenant), .name = "feeds"},
      "configmaps");
}

TEST(FeedMemory, OfAllFeedsOfATenantIsBoundedAndSaysWhatIsTooLarge) {
  const auto accounts =
      std::make_shared<budget::Accounts>(budget::Accounts::Limits{.tenant_bytes_max = 10 * kMiB});
  const auto first = feed_of(accounts, "a");
  const auto second = feed_of(accounts, "a");
  ASSERT_TRUE(first->resize(6 * kMiB));
  ASSERT_TRUE(second->resize(4 * kMiB));

  const Result<> more = second->resize(5 * kMiB);

  ASSERT_FALSE(more.has_value());
  EXPECT_EQ(more.error().kind(), ErrorKind::LimitExceeded);
  EXPECT_EQ(more.error().reason(), kTooLargeToWatch);
  EXPECT_TRUE(more.error().message().contains("configmaps")) << more.error().message();
  EXPECT_TRUE(more.error().message().contains("10 MiB of its namespace")) << more.error().message();
  EXPECT_TRUE(second->resize(kMiB)) << "less is always allowed";
  EXPECT_TRUE(feed_of(accounts, "b")->resize(10 * kMiB));
}

TEST(FeedMemory, IsPaidByASharerWhereThePayerHasNoRoom) {
  // The host has room for the objects once only.
  const auto accounts = std::make_shared<budget::Accounts>(
      budget::Accounts::Limits{.host_bytes_max = 20 * kMiB, .tenant_bytes_max = 10 * kMiB});
  const auto [a, b, c] =
      std::array{budget::Tenant::of_namespace("a"), budget::Tenant::of_namespace("b"),
                 budget::Tenant::of_namespace("c")};
  const auto own = feed_of(accounts, "a");
  const auto of_b = feed_of(accounts, "b");
  const auto shared = feed_of(accounts, "a");
  shared->set_sharers([&] { return std::vector{a, b, c}; });
  ASSERT_TRUE(shared->resize(5 * kMiB));
  ASSERT_TRUE(own->resize(5 * kMiB));
  ASSERT_TRUE(of_b->resize(2 * kMiB));

  ASSERT_TRUE(shared->resize(9 * kMiB)) << "the one with the most room has 10 MiB";

  EXPECT_EQ(shared->payer(), c);
  EXPECT_EQ(accounts->held_bytes(a), 5 * kMiB);
  EXPECT_EQ(accounts->held_bytes(c), 9 * kMiB);
  const Result<> more = shared->resize(11 * kMiB);
  ASSERT_FALSE(more.has_value());
  EXPECT_EQ(shared->payer(), c);
  EXPECT_EQ(accounts->held_bytes(c), 9 * kMiB) << "nothing has changed";
  EXPECT_FALSE(shared->hand_over({a, b}));
  EXPECT_FALSE(shared->hand_over({}));
  EXPECT_EQ(accounts->held_bytes(c), 9 * kMiB);
  ASSERT_TRUE(own->resize(kMiB));
  EXPECT_TRUE(shared->hand_over({a, b}));
  EXPECT_EQ(accounts->held_bytes(a), 10 * kMiB);
  EXPECT_EQ(accounts->held_bytes(c), 0U);
}

TEST(FeedMemory, OutlivesTheGatewayAndGivesBack) {
  auto accounts = std::make_shared<budget::Accounts>(budget::Accounts::Limits{});
  const std::weak_ptr<budget::Accounts> known = accounts;
  auto feed = feed_of(accounts, "a");
  ASSERT_TRUE(feed->resize(kMiB));
  accounts.reset();

  ASSERT_FALSE(known.expired());
  EXPECT_EQ(known.lock()->held_bytes(), kMiB);
  feed.reset();
  EXPECT_TRUE(known.expired());
}

}  // namespace
}  // namespace hangar::gateway
