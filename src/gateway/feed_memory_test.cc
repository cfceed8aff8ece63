#include "gateway/feed_memory.h"

#include "base/limits.h"
#include "base/result.h"
#include "budget/accounts.h"
#include "budget/consumer.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

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
