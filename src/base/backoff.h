// How long to wait before the next attempt: exponential back-off, the only implementation in
// this project.
//
// A pure function of the count of failures. The caller keeps the count and passes the random
// number, so that a test controls both.
#pragma once

#include "base/time.h"

#include <cstdint>

namespace hangar {

// `delay`, lengthened by up to `share` of itself. `random` is between 0 and 1.
[[nodiscard]] Duration with_jitter(Duration delay, double share, double random);

struct ExponentialBackoff {
  Duration min;
  Duration max;       // Jitter included. Less than `min`: the delay is always `max`.
  double factor = 2;  // From one failure to the next.
  double jitter = 0;  // Up to this share is added, to spread joint retries.

  // The delay after a failure that follows `failures` others. Jitter varies the delay even at
  // the maximum.
  [[nodiscard]] Duration delay(std::uint64_t failures, double random = 0) const;
};

}  // namespace hangar
