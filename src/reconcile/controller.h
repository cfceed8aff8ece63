// Runs a Reconciler for keys: at most one run per key at a time, again while something changes,
// later when it failed.
//
// What the result of a run means:
//   success                 done; earlier failures are forgotten
// - success: done; earlier failures are forgotten.
// - success with requeue_after: the same, and once more after that time (zero: after the key's
//   back-off).
// - InvalidInput: terminal, not again until somebody enqueues the key.
// - Conflict: again almost at once; after a few in a row as any other error.
// - Cancelled: dropped, we are stopping. If it was the deadline: as Unavailable.
// - GuestFault, LimitExceeded: again after the key's back-off, which begins with a second, because
//   the same input will fail again.
// - any other error: again after the key's back-off, which begins with milliseconds. NotFound too:
//   what a run needs and does not find may appear; a run whose object is gone returns success.
// Loop thread only.
#pragma once

#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "base/token_bucket.h"
#include "io/loop.h"
#include "io/task.h"
#include "kube/object.h"
#include "reconcile/backoff.h"
#include "reconcile/turnstile.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

namespace hangar::reconcile {

struct Outcome {
  std::optional<Duration> requeue_after = {};
};

// What a run looks at is the state now, not what changed: runs are merged, repeated and lost (with
// the process). Asked to end by the token, at its deadline and when the controller stops.
using Reconciler =
    std::function<io::Task<Result<Outcome>>(kube::ObjectKey key, std::stop_token stop)>;

class Controller {
 public:
  struct Options {
    std::string name;
    // Runs at the same time, of different keys.
    std::size_t concurrency = 1;
    // For one run.
    Duration deadline = std::chrono::minutes(2);
    Backoff::Options backoff = {};
    // Over all keys: how fast failures are repeated. client-go's default.
    TokenBucket::Options retries = {.per_second = 10, .burst = 100};
    // Shared with other controllers; outlives this one. Null: only `concurrency` counts.
    Turnstile* turnstile = nullptr;
    // Runs that it may start there before others have their turn. A few in a row, because the
    // second one finds what the first has used: a flight's code, in memory and in the processor's
    // caches.
    std::uint32_t weight = 4;
  };

  // `metrics` outlives it. Nothing runs before start(), but keys are taken.
  Controller(io::Loop& loop, Metrics& metrics, Log log, Options options, Reconciler reconciler);
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;
  // Stop it before: a run that still goes on is only asked to end.
  ~Controller();

  void enqueue(kube::ObjectKey key);
  // Of several for one key the earliest counts.
  void enqueue_after(kube::ObjectKey key, Duration delay);

  void start();
  // Begins no more runs and waits for those that go on: half of limits::kShutdownMax to end by
  // themselves, the other half once they are asked to. What goes on after that is abandoned. Keys
  // that wait are dropped; whoever starts next finds them by listing.
  [[nodiscard]] io::Task<void> stop();

  [[nodiscard]] std::size_t depth() const;
  [[nodiscard]] std::size_t running_count() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace hangar::reconcile
