#include "reconcile/controller.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/random.h"
#include "base/result.h"
#include "base/seconds.h"
#include "base/time.h"
#include "base/token_bucket.h"
#include "budget/consumer.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "kube/object.h"
#include "reconcile/backoff.h"
#include "reconcile/keyed_queue.h"
#include "reconcile/places.h"
#include "reconcile/turnstile.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::reconcile {

namespace {

using budget::Tenant;
using std::chrono::milliseconds;

// Another writer was first: read again soon, but leave time for its next write.
constexpr milliseconds kConflictDelay{20};
// Conflicts in a row; after these two writers compete, and waiting is cheaper.
constexpr std::uint32_t kConflictsPrompt = 5;

// Up to this many namespaces, retry rates are kept; beyond, those without recent failures are
// dropped.
constexpr std::size_t kRetriesKept = 64;

// How often the metrics of running reconciles are updated while there are any.
constexpr milliseconds kProgressPeriod{500};

std::int64_t in_milliseconds(Duration duration) {
  return std::chrono::duration_cast<milliseconds>(duration).count();
}

// The names and labels of controller-runtime and client-go.
struct Instruments {
  Instruments(Metrics& metrics, const std::string& name)
      : success(reconciles(metrics, name, "success")),
        error(reconciles(metrics, name, "error")),
        requeue(reconciles(metrics, name, "requeue")),
        requeue_after(reconciles(metrics, name, "requeue_after")),
        errors(metrics.counter("controller_runtime_reconcile_errors_total",
                               "Reconciles that failed, by controller.", {{"controller", name}})),
        terminal_errors(metrics.counter("controller_runtime_terminal_reconcile_errors_total",
                                        "Reconciles that failed and are not repeated.",
                                        {{"controller", name}})),
        time(metrics.histogram("controller_runtime_reconcile_time_seconds",
                               "How long a reconcile took.", latency_buckets(),
                               {{"controller", name}})),
        active_workers(metrics.gauge("controller_runtime_active_workers",
                                     "Reconciles that run now.", {{"controller", name}})),
        max_concurrent(metrics.gauge("controller_runtime_max_concurrent_reconciles",
                                     "Reconciles that may run at once.", {{"controller", name}})),
        depth(metrics.gauge("workqueue_depth", "Keys that wait.", queue(name))),
        adds(metrics.counter("workqueue_adds_total", "Keys that were added.", queue(name))),
        queue_duration(metrics.histogram("workqueue_queue_duration_seconds",
                                         "How long a key waited.", queue_buckets(), queue(name))),
        work_duration(metrics.histogram("workqueue_work_duration_seconds",
                                        "How long a key was worked on.", queue_buckets(),
                                        queue(name))),
        retries(metrics.counter("workqueue_retries_total",
                                "Keys that were added again because they failed.", queue(name))),
        unfinished(metrics.gauge("workqueue_unfinished_work_seconds",
                                 "The sum of how long the running reconciles have run.",
                                 queue(name))),
        longest(metrics.gauge("workqueue_longest_running_processor_seconds",
                              "How long the longest running reconcile has run.", queue(name))) {}

  static MetricLabels queue(const std::string& name) {
    return {{"name", name}, {"controller", name}};
  }
  static Counter& reconciles(Metrics& metrics, const std::string& name, const char* result) {
    return metrics.counter("controller_runtime_reconcile_total", "Reconciles, by result.",
                           {{"controller", name}, {"result", result}});
  }

  Counter& success;
  Counter& error;
  Counter& requeue;
  Counter& requeue_after;
  Counter& errors;
  Counter& terminal_errors;
  Histogram& time;
  Gauge& active_workers;
  Gauge& max_concurrent;
  Gauge& depth;
  Counter& adds;
  Histogram& queue_duration;
  Histogram& work_duration;
  Counter& retries;
  Gauge& unfinished;
  Gauge& longest;
};

}  // namespace

// Shared with the runs, which may outlive the controller if they ignore the request to stop.
struct Controller::State : std::enable_shared_from_this<State> {
  struct Run {
    Instant started_at;
    Instant queued_at;
    std::stop_source stop = {};
    bool is_overdue = false;
  };

  State(io::Loop& loop_in, Metrics& metrics, Log log_in, Options options_in,
        Reconciler reconciler_in)
      : loop(loop_in),
        log(std::move(log_in)),
        options(std::move(options_in)),
        reconciler(std::move(reconciler_in)),
        instruments(metrics, options.name),
        places(options.concurrency),
        queue(options.is_deletion),
        backoff(options.backoff, random_number()),
        run_ended(loop) {
    instruments.max_concurrent.set(static_cast<double>(options.concurrency));
  }

  void start() {
    if (lane || is_stopping) return;
    if (options.turnstile == nullptr) own_turnstile.emplace(loop, options.concurrency);
    Turnstile& turnstile = options.turnstile != nullptr ? *options.turnstile : *own_turnstile;
    lane = turnstile.lane(
        [weak = weak_from_this()](Turnstile::Offer& offer) {
          const auto self = weak.lock();
          return self ? self->start_run(offer) : Turnstile::Started::Nothing;
        },
        options.weight);
    arm();
    lane->wake(queue.has_deletion());
  }

  void enqueue(kube::ObjectKey key) {
    if (is_stopping) return;
    if (queue.add(std::move(key), io::Loop::now())) instruments.adds.add();
    changed();
  }

  void enqueue_after(kube::ObjectKey key, Duration delay) {
    if (is_stopping) return;
    queue.add_at(std::move(key), io::Loop::now() + std::max(delay, Duration::zero()));
    arm();
  }

  void changed() {
    instruments.depth.set(static_cast<double>(queue.depth()));
    if (lane) lane->wake(queue.has_deletion());
  }

  // The timer for the next delayed key.
  void arm() {
    if (!lane || is_stopping) return;
    const auto due = queue.next_due();
    if (!due) return;
    due_timer = loop.after(std::max(*due - io::Loop::now(), Duration::zero()), [this] {
      instruments.adds.add(static_cast<double>(queue.advance(io::Loop::now())));
      changed();
      arm();
    });
  }

  // The places that one run holds, in this controller and in the turnstile.
  struct Held {
    Places::Place place;
    Turnstile::Slot slot;
  };

  Turnstile::Started start_run(Turnstile::Offer& offer) {
    if (is_stopping) return Turnstile::Started::Nothing;
    bool is_blocked = false;
    auto ticket = queue.take(io::Loop::now(), [&](const Tenant& tenant, bool is_deletion) {
      // The end of a run wakes the lane.
      if (!places.may_take(tenant, is_deletion)) return false;
      const bool may_take = offer.may_take(tenant, is_deletion);
      is_blocked = is_blocked || !may_take;
      return may_take;
    });
    if (!ticket) return is_blocked ? Turnstile::Started::Blocked : Turnstile::Started::Nothing;
    const Tenant tenant = Tenant::of_namespace(ticket->key().namespace_);
    Held held{.place = places.take(tenant, ticket->is_deletion()),
              .slot = offer.take(tenant, ticket->is_deletion())};
    loop.spawn(run(shared_from_this(), *std::move(ticket), std::move(held)));
    return Turnstile::Started::One;
  }

  static io::Task<void> run(std::shared_ptr<State> self, KeyedQueue::Ticket ticket_in,
                            Held held_in) {
    {
      // Released before the lane is woken: the key may be ready again.
      const Held held = std::move(held_in);
      KeyedQueue::Ticket ticket = std::move(ticket_in);
      const std::string& namespace_ = ticket.key().namespace_;
      const io::Loop::Activity activity(
          self->loop, fmt::format("{} {}/{}", self->options.name, namespace_, ticket.key().name),
          Tenant::of_namespace(namespace_));
      Run& run = self->begin(ticket);
      const io::Loop::Timer deadline = self->loop.after(self->options.deadline, [&run] {
        run.is_overdue = true;
        run.stop.request_stop();
      });
      Result<Outcome> result = co_await reconcile(*self, ticket.key(), run.stop.get_token());
      if (!result && result.error().kind() == ErrorKind::Cancelled && run.is_overdue) {
        result = fail(ErrorKind::Unavailable,
                      "took longer than its deadline of " + to_go_duration(self->options.deadline));
      }
      const Duration took = io::Loop::now() - run.started_at;
      ticket.charge(took);
      self->settle(ticket.key(), result, took);
    }
    self->changed();
    self->run_ended.notify_all();
  }

  // An exception of the reconciler, before its first wait or later, counts as an error of this key.
  static io::Task<Result<Outcome>> reconcile(State& self, kube::ObjectKey key,
                                             std::stop_token stop) {
    co_return co_await self.reconciler(std::move(key), std::move(stop));
  }

  Run& begin(const KeyedQueue::Ticket& ticket) {
    instruments.queue_duration.observe(in_seconds(ticket.waited()));
    instruments.depth.set(static_cast<double>(queue.depth()));
    Run& run = runs.try_emplace(ticket.key(), io::Loop::now(), ticket.added_at()).first->second;
    instruments.active_workers.set(static_cast<double>(runs.size()));
    if (runs.size() == 1) watch_progress();
    return run;
  }

  void settle(const kube::ObjectKey& key, const Result<Outcome>& result, Duration took) {
    runs.erase(key);
    instruments.active_workers.set(static_cast<double>(runs.size()));
    instruments.time.observe(in_seconds(took));
    instruments.work_duration.observe(in_seconds(took));
    if (runs.empty()) show_progress();  // The timer stops with the last one.
    if (result) {
      succeeded(key, *result);
    } else {
      failed(key, result.error());
    }
  }

  void succeeded(const kube::ObjectKey& key, const Outcome& outcome) {
    conflicts.erase(key);
    if (!outcome.requeue_after) {
      backoff.forget(key);
      instruments.success.add();
      return;
    }
    if (*outcome.requeue_after > Duration::zero()) {
      backoff.forget(key);
      instruments.requeue_after.add();
      enqueue_after(key, *outcome.requeue_after);
      return;
    }
    instruments.requeue.add();
    retry(key);
  }

  void failed(const kube::ObjectKey& key, const Error& error) {
    switch (error.kind()) {
      case ErrorKind::Cancelled:
        return;
      case ErrorKind::InvalidInput:
        backoff.forget(key);
        conflicts.erase(key);
        instruments.error.add();
        instruments.errors.add();
        instruments.terminal_errors.add();
        say("reconcile failed for good", key, error, Duration::zero());
        return;
      case ErrorKind::Conflict:
        if (++conflicts[key] <= kConflictsPrompt) {
          // Users of controller-runtime do not count this as an error, only as one more run.
          instruments.requeue.add();
          instruments.retries.add();
          enqueue_after(key, kConflictDelay);
          return;
        }
        break;
      default:
        conflicts.erase(key);
    }
    instruments.error.add();
    instruments.errors.add();
    say("reconcile failed", key, error, retry(key, failure_of(error.kind())));
  }

  // A guest that failed on this input will fail again, and each retry costs a whole run of the
  // guest.
  static Backoff::Failure failure_of(ErrorKind kind) {
    return kind == ErrorKind::GuestFault || kind == ErrorKind::LimitExceeded
               ? Backoff::Failure::Repeating
               : Backoff::Failure::Passing;
  }

  Duration retry(const kube::ObjectKey& key, Backoff::Failure failure = Backoff::Failure::Passing) {
    const Duration delay = std::max(backoff.failed(key, failure), turn_to_retry(key));
    instruments.retries.add();
    enqueue_after(key, delay);
    return delay;
  }

  // How long a retry waits for earlier retries of its namespace. A deletion waits only for
  // deletions.
  Duration turn_to_retry(const kube::ObjectKey& key) {
    const bool is_deletion = options.is_deletion && options.is_deletion(key);
    const Instant now = io::Loop::now();
    if (retries.size() >= retries_at_sweep) {
      // A full bucket need not be kept: a new one is full too.
      for (auto at = retries.begin(); at != retries.end();)
        at = at->second.is_full(now) ? retries.erase(at) : std::next(at);
      retries_at_sweep = std::max(kRetriesKept, 2 * retries.size());
    }
    return retries.try_emplace({key.namespace_, is_deletion}, options.retries)
        .first->second.reserve(now);
  }

  void say(std::string_view message, const kube::ObjectKey& key, const Error& error,
           Duration retry_in) const {
    log.warning(message, {{"controller", options.name},
                          {"namespace", key.namespace_},
                          {"name", key.name},
                          {"kind", name_of(error.kind())},
                          {"error", error.message()},
                          {"retry_in_ms", in_milliseconds(retry_in)}});
  }

  void watch_progress() {
    progress_timer = loop.after(kProgressPeriod, [this] {
      show_progress();
      if (!runs.empty()) watch_progress();
    });
  }

  void show_progress() const {
    Duration sum{};
    Duration longest{};
    for (const auto& [key, run] : runs) {
      const Duration age = io::Loop::now() - run.started_at;
      sum += age;
      longest = std::max(longest, age);
    }
    instruments.unfinished.set(in_seconds(sum));
    instruments.longest.set(in_seconds(longest));
  }

  static io::Task<void> stop(std::shared_ptr<State> self) {
    self->end();
    co_await wait_for_runs(self, limits::kShutdownMax / 2);
    self->ask_runs_to_end();
    co_await wait_for_runs(self, limits::kShutdownMax / 2);
    if (!self->runs.empty()) {
      self->log.warning("reconciles were abandoned",
                        {{"controller", self->options.name}, {"count", self->runs.size()}});
    }
  }

  void end() {
    is_stopping = true;
    due_timer.cancel();
    lane.reset();
  }

  void ask_runs_to_end() {
    for (auto& [key, run] : runs)
      run.stop.request_stop();
  }

  static io::Task<void> wait_for_runs(std::shared_ptr<State> self, Duration at_most) {
    const std::stop_source over;
    const io::Loop::Timer timer = self->loop.after(at_most, [over] { over.request_stop(); });
    while (!self->runs.empty() && !over.stop_requested()) {
      const Result<> notified = co_await self->run_ended.wait(over.get_token());
      (void)notified;  // Either way the conditions above decide what comes next.
    }
  }

  io::Loop& loop;
  const Log log;
  const Options options;
  const Reconciler reconciler;
  const Instruments instruments;

  Places places;
  KeyedQueue queue;
  Backoff backoff;
  // By namespace and by whether they are for deletions.
  std::map<std::pair<std::string, bool>, TokenBucket> retries;
  std::size_t retries_at_sweep = kRetriesKept;
  std::map<kube::ObjectKey, std::uint32_t> conflicts;  // In a row.
  std::map<kube::ObjectKey, Run> runs;

  std::optional<Turnstile> own_turnstile;
  std::unique_ptr<Turnstile::Lane> lane;  // From start() to stop().
  bool is_stopping = false;
  io::Loop::Timer due_timer;
  io::Loop::Timer progress_timer;
  io::Event run_ended;
};

Controller::Controller(io::Loop& loop, Metrics& metrics, Log log, Options options,
                       Reconciler reconciler)
    : state_(std::make_shared<State>(loop, metrics, std::move(log), std::move(options),
                                     std::move(reconciler))) {}

Controller::~Controller() {
  state_->end();
  state_->ask_runs_to_end();
}

void Controller::enqueue(kube::ObjectKey key) {
  state_->enqueue(std::move(key));
}

void Controller::enqueue_after(kube::ObjectKey key, Duration delay) {
  state_->enqueue_after(std::move(key), delay);
}

void Controller::start() {
  state_->start();
}

io::Task<void> Controller::stop() {
  return State::stop(state_);
}

std::optional<Instant> Controller::queued_at(const kube::ObjectKey& key) const {
  const auto run = state_->runs.find(key);
  if (run == state_->runs.end()) return std::nullopt;
  return run->second.queued_at;
}

std::size_t Controller::depth() const {
  return state_->queue.depth();
}

std::size_t Controller::running_count() const {
  return state_->runs.size();
}

}  // namespace hangar::reconcile
