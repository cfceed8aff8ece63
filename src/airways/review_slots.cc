#include "airways/review_slots.h"

#include "admission/review.h"
#include "base/result.h"
#include "budget/consumer.h"
#include "budget/fair_slots.h"
#include "io/loop.h"
#include "io/task.h"

#include <fmt/format.h>

#include <stop_token>
#include <string>
#include <utility>

namespace hangar::airways {

namespace {

// Parentheses occur in no namespace's name.
constexpr const char* kReviews = "(reviews)";
constexpr const char* kConversions = "(conversions)";

budget::Tenant tenant_of(const admission::Review& review) {
  return budget::Tenant::of_namespace(review.is_authenticated ? review.key.namespace_ : kReviews);
}

}  // namespace

budget::Consumer consumer_of(const admission::Review& review, std::string name) {
  if (!review.is_authenticated) name += fmt::format(" in {}", review.key.namespace_);
  return {.tenant = tenant_of(review), .name = std::move(name), .may_use_kept = true};
}

budget::Consumer conversion_consumer(const std::string& airway) {
  return {.tenant = budget::Tenant::of_namespace(kConversions), .name = "converter/" + airway};
}

ReviewSlots::ReviewSlots(io::Loop& loop)
    : slots_(loop, {.slots = kReviewsMax,
                    .waiting_per_consumer_max = kReviewsWaitingPerConsumerMax,
                    .waiting_per_tenant_max = kReviewsWaitingPerTenantMax}) {}

io::Task<Result<ReviewSlots::Slot>> ReviewSlots::take(const admission::Review& review,
                                                      std::stop_token stop) {
  return take_for({.tenant = tenant_of(review),
                   .name = review.is_authenticated ? review.identity.user : review.key.namespace_},
                  std::move(stop));
}

io::Task<Result<ReviewSlots::Slot>> ReviewSlots::take_conversion(std::string airway,
                                                                 std::stop_token stop) {
  return take_for(conversion_consumer(airway), std::move(stop));
}

io::Task<Result<ReviewSlots::Slot>> ReviewSlots::take_for(budget::Consumer consumer,
                                                          std::stop_token stop) {
  Result<Slot> slot = co_await slots_.acquire(std::move(consumer), {}, std::move(stop));
  if (slot) co_return slot;
  const bool is_full = slot.error().kind() == ErrorKind::LimitExceeded;
  co_return fail(ErrorKind::Unavailable,
                 is_full ? "too many reviews are under way: " + slot.error().message()
                         : "other reviews are under way; try again in a moment");
}

}  // namespace hangar::airways
