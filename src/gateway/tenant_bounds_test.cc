#include "gateway/tenant_bounds.h"

#include "http/limits.h"

#include <gtest/gtest.h>

#include <cstddef>

namespace hangar::gateway {
namespace {

constexpr std::size_t kUsual = kStreamsOfTenantsMax - kStreamsKeptForFew;

TEST(FairBound, IsTheTenantsOwnWhileThereAreNotTooMany) {
  EXPECT_EQ(fair_bound(kFeedsPerTenantMax, kUsual - 1), kFeedsPerTenantMax);
}

TEST(FairBound, IsSmallWhereThereAreTooMany) {
  EXPECT_EQ(fair_bound(kFeedsPerTenantMax, kUsual), kFewStreams);
  EXPECT_EQ(fair_bound(1, kUsual), 1U) << "a bound of its own stays";
  EXPECT_EQ(fair_bound(kFeedsPerTenantMax, kStreamsOfTenantsMax), 0U);
}

TEST(FairBound, LeavesAThousandTenantsSomethingBesideThoseThatTakeAll) {
  constexpr std::size_t kGreedy = 1000;
  constexpr std::size_t kLater = kStreamsKeptForFew / kFewStreams;
  std::size_t all = 0;
  const auto take_all = [&all](std::size_t most) {
    std::size_t held = 0;
    while (held < fair_bound(most, all)) {
      ++held;
      ++all;
    }
    return held;
  };

  // A greedy tenant that comes while too many are held has no more than anyone else.
  for (std::size_t i = 0; all < kUsual && i < kGreedy; ++i)
    (void)take_all(kOwnWatchesPerTenantMax);
  for (std::size_t i = 0; i + 1 < kLater; ++i)
    ASSERT_GE(take_all(kFeedsPerTenantMax), kFewStreams) << i;
}

TEST(FairBound, LeavesStreamsForTheHost) {
  constexpr std::size_t kStreams = 100;  // Of a connection to kube-apiserver.
  EXPECT_GE(static_cast<std::size_t>(limits::kHttp2ConnectionsEver) * kStreams,
            kStreamsOfTenantsMax + 1000);
}

}  // namespace
}  // namespace hangar::gateway
