// How long each key waits before it is retried.
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
// quarter is added at random, so that keys that failed together are not retried together.
class Backoff {
 public:
  // client-go's default for controllers. `min_repeating` is about the first delay of yoke's Air
  // Traffic Controller and of the kubelet: each such failure costs a run of a guest.
  struct Options {
    Duration min = std::chrono::milliseconds(5);
    Duration max = std::chrono::seconds(1000);
    Duration min_repeating = std::chrono::seconds(1);
  };
  enum class Failure : std::uint8_t {
    Passing,    // Caused from outside: a conflict, an unreachable server.
    Repeating,  // The same input will fail again: a guest that exited with an error.
  };
  Backoff(Options options, std::uint64_t seed) : options_(options), random_(seed) {}

  // Counts a failure of `key` and returns the delay, which is at least the failure's minimum and at
  // most `max`.
  [[nodiscard]] Duration failed(const kube::ObjectKey& key, Failure failure = Failure::Passing);
  // The key succeeded, or is no longer needed.
  void forget(const kube::ObjectKey& key) { failures_.erase(key); }

  [[nodiscard]] std::size_t key_count() const { return failures_.size(); }

 private:
  const Options options_;
  std::mt19937_64 random_;
  std::map<kube::ObjectKey, std::uint32_t> failures_;
};

}  // namespace hangar::reconcile
