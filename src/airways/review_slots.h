// Bounds the reviews and conversions under way, and says on whose account their flights run.
//
// A review of a sender that is not known to be the API server may name any namespace and any user.
// So what is done for it is counted against none of them: such reviews share one queue and one
// account of memory and workers, "(reviews)". Conversions, whose sender is never known, share
// another one. No namespace has such a name.
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

// At once, of all tenants; one alone has half of them (budget/fair_slots.h). Most of them wait for
// the API server, a module or a worker.
inline constexpr std::size_t kReviewsMax = 64;
// Of one tenant, and in a tenant of one namespace or user.
inline constexpr std::size_t kReviewsWaitingPerTenantMax = 128;
inline constexpr std::size_t kReviewsWaitingPerConsumerMax = 64;

// On whose behalf the flight of a review runs. `name`: "admission/flights.yoke.cd".
[[nodiscard]] budget::Consumer consumer_of(const admission::Review& review, std::string name);
// The same of a conversion.
[[nodiscard]] budget::Consumer conversion_consumer(const std::string& airway);

class ReviewSlots {
 public:
  using Slot = budget::FairSlots::Slot;

  explicit ReviewSlots(io::Loop& loop);
  ReviewSlots(const ReviewSlots&) = delete;
  ReviewSlots& operator=(const ReviewSlots&) = delete;

  // Unavailable, with words for the sender: too many wait already, or `stop` came first.
  [[nodiscard]] io::Task<Result<Slot>> take(const admission::Review& review, std::stop_token stop);
  [[nodiscard]] io::Task<Result<Slot>> take_conversion(std::string airway, std::stop_token stop);

 private:
  [[nodiscard]] io::Task<Result<Slot>> take_for(budget::Consumer consumer, std::stop_token stop);

  budget::FairSlots slots_;
};

}  // namespace hangar::airways
