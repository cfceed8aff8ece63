// How long to wait before trying again.
#pragma once

#include "base/time.h"
#include "kube/object.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>

namespace hangar::reconcile {

// Per key: the first failure waits `min`, each further one twice as long, up to `max`. Up to a
// quarter is added at random, so that what failed together does not come back together.
class Backoff {
 public:
  // client-go's default for controllers.
  struct Options {
    Duration min = std::chrono::milliseconds(5);
    Duration max = std::chrono::seconds(1000);
  };
  Backoff(Options options, std::uint64_t seed) : options_(options), random_(seed) {}

  // Counts a failure of `key` and returns the delay, which is at least `min` and at most `max`.
  [[nodiscard]] Duration failed(const kube::ObjectKey& key);
  // It succeeded, or is of no interest any more.
  void forget(const kube::ObjectKey& key) { failures_.erase(key); }

  [[nodiscard]] std::uint32_t failure_count(const kube::ObjectKey& key) const;
  [[nodiscard]] std::size_t key_count() const { return failures_.size(); }

 private:
  const Options options_;
  std::mt19937_64 random_;
  std::map<kube::ObjectKey, std::uint32_t> failures_;
};

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

}  // namespace hangar::reconcile
