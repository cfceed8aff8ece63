// Bounds concurrent reviews and conversions, and chooses the consumers that their flights run for.
//
// A review from an unauthenticated sender may name any namespace and any user. So its work is
// charged to none of them: such reviews share one queue and one account of memory and workers,
// "(reviews)". Conversions, whose sender is never known, share another one. No namespace has such a
// name.
// Loop thread only.
#pragma once

#include "admission/review.h"
#include "base/result.h"
#include "budget/consumer.h"
#include "budget/fair_slots.h"
#include "io/loop.h"
#include "io/task.h"

#include <cstddef>
#include <stop_token>
#include <string>

namespace hangar::airways {

// Concurrent reviews of all tenants; a single one may have half of them (budget/fair_slots.h). Most
// of them wait for the API server, a module or a worker.
inline constexpr std::size_t kReviewsMax = 64;
// Waiting reviews: of one tenant, and within it of one namespace or user.
inline constexpr std::size_t kReviewsWaitingPerTenantMax = 128;
inline constexpr std::size_t kReviewsWaitingPerConsumerMax = 64;

// The consumer on whose behalf the flight of a review runs. `name`: "admission/flights.yoke.cd".
[[nodiscard]] budget::Consumer consumer_of(const admission::Review& review, std::string name);
// The same for a conversion.
[[nodiscard]] budget::Consumer conversion_consumer(const std::string& airway);

class ReviewSlots {
 public:
  using Slot = budget::FairSlots::Slot;

  explicit ReviewSlots(io::Loop& loop);
  ReviewSlots(const ReviewSlots&) = delete;
  ReviewSlots& operator=(const ReviewSlots&) = delete;

  // Unavailable, with a message for the sender: too many wait already, or `stop` came first.
  [[nodiscard]] io::Task<Result<Slot>> take(const admission::Review& review, std::stop_token stop);
  [[nodiscard]] io::Task<Result<Slot>> take_conversion(std::string airway, std::stop_token stop);

 private:
  [[nodiscard]] io::Task<Result<Slot>> take_for(budget::Consumer consumer, std::stop_token stop);

  budget::FairSlots slots_;
};

}  // namespace hangar::airways
