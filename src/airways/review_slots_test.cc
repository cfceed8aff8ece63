#include "airways/review_slots.h"

#include "admission/review.h"
#include "base/result.h"
#include "budget/consumer.h"
#include "io/loop.h"
#include "io/task.h"
#include "kube/object.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <stop_token>
#include <string>
#include <vector>

namespace hangar::airways {
namespace {

using admission::Review;
using ::testing::HasSubstr;

Review review_of(const std::string& namespace_, bool is_authenticated) {
  Review review;
  review.key = {.namespace_ = namespace_, .name = "web"};
  review.identity.user = "alice";
  review.is_authenticated = is_authenticated;
  return review;
}

TEST(ReviewConsumer, IsTheNamespaceOnlyWhereTheApiServerSaysSo) {
  const budget::Tenant victim = budget::Tenant::of_namespace("victim");

  EXPECT_EQ(consumer_of(review_of("victim", true), "admission/x").tenant, victim);
  const budget::Consumer stranger = consumer_of(review_of("victim", false), "admission/x");
  EXPECT_EQ(stranger.tenant.label(), "(reviews)");
  EXPECT_NE(stranger.tenant, victim);
  EXPECT_NE(stranger.tenant, consumer_of(review_of("", true), "admission/x").tenant);
  EXPECT_EQ(conversion_consumer("backends.example.com").tenant.label(), "(conversions)");
}

// A review that holds its slot until the loop ends.
struct Outcomes {
  std::vector<ReviewSlots::Slot> held;
  std::vector<std::string> refused;
};
io::Task<void> take(ReviewSlots& slots, Review review, Outcomes& outcomes, std::stop_token stop) {
  Result<ReviewSlots::Slot> slot = co_await slots.take(review, stop);
  if (slot) {
    outcomes.held.push_back(*std::move(slot));
  } else {
    EXPECT_EQ(slot.error().kind(), ErrorKind::Unavailable);
    outcomes.refused.push_back(slot.error().message());
  }
}

TEST(ReviewSlotsTest, StrangersShareOneQueueWhateverNamespacesTheyName) {
  io::Loop loop;
  ReviewSlots slots(loop);
  std::stop_source stop;
  constexpr std::size_t kMore = 5;
  Outcomes strangers;
  Outcomes known;

  for (std::size_t i = 0; i < kReviewsMax / 2 + kReviewsWaitingPerTenantMax + kMore; ++i) {
    const Review review = review_of("victim-" + std::to_string(i), false);
    loop.spawn(take(slots, review, strangers, stop.get_token()));
  }
  loop.spawn(take(slots, review_of("victim-1", true), known, stop.get_token()));
  loop.run_until([&known] { return !known.held.empty(); });

  EXPECT_EQ(strangers.held.size(), kReviewsMax / 2);
  ASSERT_EQ(strangers.refused.size(), kMore);
  EXPECT_THAT(strangers.refused[0], HasSubstr("too many reviews are under way"));
  EXPECT_EQ(known.held.size(), 1U);
  // Waiters end before what they wait for.
  stop.request_stop();
  loop.run_until([&loop] { return loop.spawned_count() == 0; });
}

}  // namespace
}  // namespace hangar::airways
