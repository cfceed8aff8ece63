// How often something may happen over time.
#pragma once

#include "base/time.h"

namespace hangar {

// Bursts of up to `burst`, and `per_second` over time: the classic token bucket, with time given.
class TokenBucket {
 public:
  struct Options {
    double per_second = 10;
    double burst = 100;
  };
  explicit TokenBucket(Options options) : options_(options), tokens_(options.burst) {}

  // Takes `count` tokens if there is one: what more it is than there are is owed, so that no count
  // is too large for the burst.
  [[nodiscard]] bool try_take(Instant now, double count = 1);
  // Takes one in any case, and returns how long its owner waits until it exists.
  [[nodiscard]] Duration reserve(Instant now);
  // As if nothing had ever been taken.
  [[nodiscard]] bool is_full(Instant now);

  [[nodiscard]] const Options& options() const { return options_; }

 private:
  void refill(Instant now);

  Options options_;
  double tokens_;  // Negative: reserved ahead, or owed.
  Instant refilled_at_;
};

}  // namespace hangar
