#include "guest/memory_grant.h"

#include "base/limits.h"
#include "base/result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace hangar::guest {
namespace {

using testing::ElementsAre;

constexpr std::uint64_t kMost = 100 * limits::kMiB;

// A host that answers requests on its own thread, as a loop would.
class MemoryGrantTest : public testing::Test {
 public:
  MemoryGrantTest()
      : grant_(10, kMost, [this](std::uint64_t bytes) {
          asked_.push_back(bytes);
          answers_.emplace_back(
              [this, bytes] { grant_.answer(bytes <= host_has_ ? "" : "the host has no more"); });
        }) {}

 protected:
  std::uint64_t host_has_ = kMost;
  std::vector<std::uint64_t> asked_;
  std::vector<std::jthread> answers_;
  MemoryGrant grant_;
};

TEST_F(MemoryGrantTest, AsksForNothingThatItHas) {
  EXPECT_TRUE(grant_.reserve(10).has_value());

  EXPECT_TRUE(asked_.empty());
}

TEST_F(MemoryGrantTest, AsksForMoreThanItNeedsSoThatItAsksSeldom) {
  for (std::uint64_t bytes = limits::kMiB; bytes < 16 * limits::kMiB; bytes += 64 * limits::kKiB)
    EXPECT_TRUE(grant_.reserve(bytes).has_value());

  EXPECT_LT(asked_.size(), 10U);
}

TEST_F(MemoryGrantTest, ASmallGuestTakesLittleMoreThanItNeeds) {
  EXPECT_TRUE(grant_.reserve(2 * limits::kMiB).has_value());
  EXPECT_THAT(asked_, ElementsAre(3 * limits::kMiB));

  EXPECT_TRUE(grant_.reserve(40 * limits::kMiB).has_value());
  EXPECT_EQ(asked_.back(), 44 * limits::kMiB);
}

TEST_F(MemoryGrantTest, TakesWhatItNeedsWhereThereIsNoMore) {
  host_has_ = 20;

  EXPECT_TRUE(grant_.reserve(20).has_value());
  const Result<> refused = grant_.reserve(21);

  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().kind(), ErrorKind::LimitExceeded);
  EXPECT_EQ(refused.error().message(), "the host has no more");
  EXPECT_EQ(asked_.at(1), 20U);
}

TEST_F(MemoryGrantTest, NeverAsksForMoreThanTheLimit) {
  EXPECT_TRUE(grant_.reserve(kMost).has_value());
  const Result<> refused = grant_.reserve(kMost + 1);

  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().kind(), ErrorKind::LimitExceeded);
  EXPECT_EQ(refused.error().message(), "the run's limit is 100 MiB");

  EXPECT_THAT(asked_, ElementsAre(kMost));
}

}  // namespace
}  // namespace hangar::guest
