#include "reconcile/backoff.h"

#include "base/backoff.h"
#include "base/time.h"
#include "kube/object.h"

#include <cstdint>
#include <limits>
#include <random>

namespace hangar::reconcile {

Duration Backoff::failed(const kube::ObjectKey& key, Failure failure) {
  const Duration min = failure == Failure::Repeating ? options_.min_repeating : options_.min;
  std::uint32_t& count = failures_[key];
  const ExponentialBackoff growth{.min = min, .max = options_.max, .jitter = 0.25};
  const Duration delay = growth.delay(count, std::uniform_real_distribution<double>(0, 1)(random_));
  if (count < std::numeric_limits<std::uint32_t>::max()) ++count;
  return delay;
}

}  // namespace hangar::reconcile
