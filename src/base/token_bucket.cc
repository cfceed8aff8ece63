#include "base/token_bucket.h"

#include "base/seconds.h"
#include "base/time.h"

#include <algorithm>
#include <chrono>

namespace hangar {

bool TokenBucket::try_take(Instant now, double count) {
  refill(now);
  if (tokens_ < 1) return false;
  tokens_ -= count;
  return true;
}

Duration TokenBucket::reserve(Instant now) {
  refill(now);
  tokens_ -= 1;
  if (tokens_ >= 0) return Duration::zero();
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(-tokens_ / options_.per_second));
}

void TokenBucket::take(Instant now, double count) {
  refill(now);
  tokens_ -= count;
}

// Rounded up: a caller that waits that long finds one.
Duration TokenBucket::until_one(Instant now) {
  refill(now);
  if (tokens_ >= 1) return Duration::zero();
  return std::chrono::ceil<Duration>(
             std::chrono::duration<double>((1 - tokens_) / options_.per_second)) +
         std::chrono::microseconds(1);
}

bool TokenBucket::is_full(Instant now) {
  refill(now);
  return tokens_ >= options_.burst;
}

void TokenBucket::refill(Instant now) {
  if (refilled_at_ == Instant()) refilled_at_ = now;  // The first use: full.
  if (now <= refilled_at_) return;
  const double seconds = in_seconds(now - refilled_at_);
  tokens_ = std::min(options_.burst, tokens_ + seconds * options_.per_second);
  refilled_at_ = now;
}

}  // namespace hangar
