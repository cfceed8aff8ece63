#include "reconcile/backoff.h"

#include "base/time.h"
#include "kube/object.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

namespace hangar::reconcile {

namespace {

constexpr double kJitter = 0.25;

}  // namespace

Duration Backoff::failed(const kube::ObjectKey& key) {
  std::uint32_t& count = failures_[key];
  // In doubles, which do not wrap: 2^1023 is the last one, and the maximum is met long before.
  const double doublings = std::min<double>(count, 1000);
  if (count < std::numeric_limits<std::uint32_t>::max()) ++count;

  const auto max = static_cast<double>(options_.max.count());
  const double plain = static_cast<double>(options_.min.count()) * std::exp2(doublings);
  // At the maximum the jitter is taken off instead, or there would be none.
  const double base = std::min(plain, max / (1 + kJitter));
  const double share = std::uniform_real_distribution<double>(0.0, kJitter)(random_);
  const Duration delay(static_cast<Duration::rep>(base * (1 + share)));
  return std::clamp(delay, std::min(options_.min, options_.max), options_.max);
}

std::uint32_t Backoff::failure_count(const kube::ObjectKey& key) const {
  const auto position = failures_.find(key);
  return position == failures_.end() ? 0 : position->second;
}

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

bool TokenBucket::is_full(Instant now) {
  refill(now);
  return tokens_ >= options_.burst;
}

void TokenBucket::refill(Instant now) {
  if (refilled_at_ == Instant()) refilled_at_ = now;  // The first use: full.
  if (now <= refilled_at_) return;
  const double seconds = std::chrono::duration<double>(now - refilled_at_).count();
  tokens_ = std::min(options_.burst, tokens_ + seconds * options_.per_second);
  refilled_at_ = now;
}

}  // namespace hangar::reconcile
