// Runs a Reconciler for keys: at most one run per key at a time. If something changed during a run,
// another one follows; if the run failed, a later one.
//
// A namespace delays only itself: namespaces take turns (KeyedQueue), one of them holds no more
// runs than it leaves free (Places), and each has its own rate of retries. Deletions go first, and
// have their own places.
//
// What the result of a run means:
// - success: done; earlier failures are forgotten.
// - success with requeue_after: the same, and another run after that time (zero: after the
//   key's back-off).
// - InvalidInput: terminal, no run until the key is enqueued again.
// - Conflict: another run almost at once; after a few in a row as any other error.
// - Cancelled: dropped, because the controller is stopping. If the deadline caused it:
//   as Unavailable.
// - GuestFault, LimitExceeded: another run after the key's back-off, which begins with a second,
//   because the same input will fail again.
// - any other error: another run after the key's back-off, which begins with milliseconds.
//   NotFound too: an object that a run needs may appear later; a run whose own object is gone
//   returns success.
// The processor time of a run is that of the namespace (io::Loop::Activity), without what the run
// only sets off: watches, fetches, guests. Loop thread only.
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

// A run looks at the present state, not at what changed: runs are merged, repeated and, if the
// process stops, lost. A stop is requested through the token at the deadline, and when the
// controller stops.
using Reconciler =
    std::function<io::Task<Result<Outcome>>(kube::ObjectKey key, std::stop_token stop)>;

class Controller {
 public:
  struct Options {
    std::string name;
    // The maximum number of runs, of different keys, at the same time; one namespace may have half
    // of them. Further runs of deletions come on top (Places).
    std::size_t concurrency = 1;
    // Whether the object of the key is being deleted, or gone. Null: none is.
    std::function<bool(const kube::ObjectKey& key)> is_deletion = {};
    // The time that one run may take.
    Duration deadline = std::chrono::minutes(2);
    Backoff::Options backoff = {};
    // How fast failures are retried, over all keys of a namespace; its deletions have the same rate
    // again. client-go's default.
    TokenBucket::Options retries = {.per_second = 10, .burst = 100};
    // Shared with other controllers; outlives this one. Null: only `concurrency` counts.
    Turnstile* turnstile = nullptr;
    // How many runs the controller may start in its turn at the turnstile. A few in a row, because
    // the second run finds what the first has loaded: a flight's code, in memory and in the
    // processor's caches.
    std::uint32_t weight = 4;
  };

  // `metrics` outlives it. No key runs before start(), but keys are accepted.
  Controller(io::Loop& loop, Metrics& metrics, Log log, Options options, Reconciler reconciler);
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;
  // Call stop() first: the destructor only requests a running reconcile to stop.
  ~Controller();

  void enqueue(kube::ObjectKey key);
  // The earliest time of several calls for one key counts.
  void enqueue_after(kube::ObjectKey key, Duration delay);

  void start();
  // Starts no more runs and waits for the running ones: half of limits::kShutdownMax for them to
  // finish by themselves, the other half after they were requested to stop. A run that still does
  // not finish is abandoned. Waiting keys are dropped; the next leader finds their objects by
  // listing.
  [[nodiscard]] io::Task<void> stop();

  // When the key was added for its present run; std::nullopt: it does not run.
  [[nodiscard]] std::optional<Instant> queued_at(const kube::ObjectKey& key) const;
  [[nodiscard]] std::size_t depth() const;
  [[nodiscard]] std::size_t running_count() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace hangar::reconcile
