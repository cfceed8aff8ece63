#include "base/backoff.h"

#include <algorithm>
#include <cmath>

namespace hangar {

Duration with_jitter(Duration delay, double share, double random) {
  const double more = static_cast<double>(delay.count()) * share * std::clamp(random, 0.0, 1.0);
  return delay + Duration(static_cast<Duration::rep>(more));
}

Duration ExponentialBackoff::delay(std::uint64_t failures, double random) const {
  // Doubles grow to infinity instead of wrapping around.
  const double grown =
      static_cast<double>(min.count()) * std::pow(factor, static_cast<double>(failures));
  const double plain = std::min(grown, static_cast<double>(max.count()) / (1 + jitter));
  const Duration delay(static_cast<Duration::rep>(plain));
  return std::clamp(with_jitter(delay, jitter, random), std::min(min, max), max);
}

}  // namespace hangar
