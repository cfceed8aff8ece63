#include "operators/operator_reviews.h"

#include "base/limits.h"
#include "base/result.h"
#include "operators/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace hangar::operators {
namespace {

using testing::HasSubstr;

TEST(ReviewPlaces, OneNamespaceDoesNotTakeAllOfThem) {
  ReviewPlaces places;
  std::vector<ReviewPlaces::Place> taken;
  for (std::size_t index = 0; index < limits::kReviewsPerTenantMax; ++index)
    taken.push_back(*places.take("loud", 0));

  const auto refused = places.take("loud", 0);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().kind(), ErrorKind::Unavailable);
  EXPECT_THAT(refused.error().message(), HasSubstr("under way in namespace loud"));
  EXPECT_TRUE(places.take("quiet", 0).has_value());
  taken.pop_back();
  EXPECT_TRUE(places.take("loud", 0).has_value());
}

TEST(ReviewPlaces, TheHostHasABoundOfItsOwn) {
  ReviewPlaces places;
  std::vector<ReviewPlaces::Place> taken;
  for (std::size_t index = 0; index < limits::kReviewsMax; ++index)
    taken.push_back(*places.take(std::to_string(index), 0));

  EXPECT_FALSE(places.take("one more", 0).has_value());
  taken.clear();
  EXPECT_TRUE(places.take("one more", 0).has_value());
}

TEST(ReviewPlaces, BytesAreBoundedForEachReviewAndForAll) {
  ReviewPlaces places;
  EXPECT_TRUE(places.take("team", limits::kReviewBodyBytesMax).has_value());
  EXPECT_EQ(places.take("team", limits::kReviewBodyBytesMax + 1).error().kind(),
            ErrorKind::InvalidInput);

  std::vector<ReviewPlaces::Place> taken;
  const std::size_t most = limits::kReviewsBodyBytesMax / limits::kReviewBodyBytesMax;
  for (std::size_t index = 0; index < most; ++index)
    taken.push_back(*places.take(std::to_string(index), limits::kReviewBodyBytesMax));
  EXPECT_EQ(places.take("other", limits::kReviewBodyBytesMax).error().kind(),
            ErrorKind::Unavailable);
}

TEST(ReviewPlaces, OneNamespaceLeavesAsManyBytesFreeAsItHolds) {
  ReviewPlaces places;
  std::vector<ReviewPlaces::Place> taken;
  while (auto place = places.take("loud", limits::kMiB))
    taken.push_back(*std::move(place));

  EXPECT_EQ(taken.size(), limits::kReviewsBodyBytesMax / limits::kMiB / 2);
  const auto refused = places.take("loud", limits::kMiB);
  EXPECT_THAT(refused.error().message(), HasSubstr("under way in namespace loud"));
  EXPECT_TRUE(places.take("quiet", limits::kReviewBodyBytesMax).has_value());
}

TEST(ReviewPlaces, FewNamespacesDoNotTakeAllOfThem) {
  ReviewPlaces places;
  std::vector<ReviewPlaces::Place> taken;
  for (const char* const tenant : {"a", "b", "c", "d"}) {
    while (auto place = places.take(tenant, 0))
      taken.push_back(*std::move(place));
  }

  EXPECT_TRUE(places.take("quiet", 0).has_value());
}

}  // namespace
}  // namespace hangar::operators
