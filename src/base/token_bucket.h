// Limits how often something happens over time.
#pragma once

#include "base/time.h"

namespace hangar {

// A token bucket, with time as a parameter: bursts of up to `burst`, and `per_second` on average.
class TokenBucket {
 public:
  struct Options {
    double per_second = 10;
    double burst = 100;
  };
  explicit TokenBucket(Options options) : options_(options), tokens_(options.burst) {}

  // Takes `count` tokens if there is at least one; the bucket then owes the shortfall, so that no
  // count is too large for it.
  [[nodiscard]] bool try_take(Instant now, double count = 1);
  // Takes one token in any case, and returns how long the caller must wait until the token exists.
  [[nodiscard]] Duration reserve(Instant now);
  // Takes `count` tokens in any case; the bucket then owes the shortfall.
  void take(Instant now, double count);
  // How long until there is a token; zero if there is one.
  [[nodiscard]] Duration until_one(Instant now);
  // True when the bucket is as if no token had ever been taken.
  [[nodiscard]] bool is_full(Instant now);

  [[nodiscard]] const Options& options() const { return options_; }

 private:
  void refill(Instant now);

  Options options_;
  double tokens_;  // Negative: reserved ahead, or owed.
  Instant refilled_at_;
};

}  // namespace hangar
