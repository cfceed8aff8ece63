#include "operators/running_operator.h"

#include "base/assert.h"
#include "base/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

namespace hangar::operators {

namespace kube_runtime = abi::kube_runtime;

using kube_runtime::TurnOutcome;
using kube_runtime::Wakeup;

namespace {

double seconds_of(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

Life::Options life_options(const SleepPolicy& sleep, const wasm::SleepableModule& module) {
  const bool may_sleep = sleep.kind != SleepPolicy::Kind::Never && !module.obstacle();
  return {.sleep_after = may_sleep ? std::optional(sleep.after) : std::nullopt};
}

reconcile::TokenBucket::Options request_rate(const OperatorLimits& limits) {
  return {.per_second = limits.requests_per_second, .burst = 2 * limits.requests_per_second};
}

// From microseconds (a resume) to the longest turn.
std::vector<double> wake_buckets() {
  return {0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01,
          0.025,   0.05,   0.1,     0.25,   0.5,   1,      2.5,   10};
}

std::size_t size_of(const gateway::Piece& piece) {
  if (const auto* const text = std::get_if<std::string>(&piece)) return text->size();
  return std::get<gateway::WatchLine>(piece).object->bytes().size();
}

}  // namespace

OperatorMetrics::OperatorMetrics(Metrics& metrics)
    : starts(metrics.counter("hangar_operator_starts_total", "guests that were started")),
      failures(metrics.counter("hangar_operator_failures_total", "guests that failed")),
      wakes(metrics.counter("hangar_operator_wakes_total", "turns after the first")),
      events(metrics.counter("hangar_operator_events_total", "answers handed over to guests")),
      events_coalesced(metrics.counter("hangar_operator_events_coalesced_total",
                                       "answers handed over in the same wake as another")),
      requests(metrics.counter("hangar_operator_requests_total", "requests of guests")),
      suspends(metrics.counter("hangar_operator_suspends_total", "guests that went to sleep")),
      suspend_failures(metrics.counter("hangar_operator_suspend_failures_total",
                                       "guests that could not go to sleep and stayed resident")),
      wake_seconds(metrics.histogram("hangar_operator_wake_seconds",
                                     "from an event's arrival to the end of the guest's turn",
                                     wake_buckets())),
      resume_seconds(metrics.histogram("hangar_operator_resume_seconds",
                                       "from disk to memory, part of a wake", wake_buckets())),
      suspend_seconds(metrics.histogram("hangar_operator_suspend_seconds", "from memory to disk",
                                        wake_buckets())) {}

// One request of the guest, and who hears its answer.
class RunningOperator::Call final : public gateway::Answer {
 public:
  Call(RunningOperator& owner, std::uint64_t id, bool is_stream)
      : owner_(&owner), id_(id), is_stream_(is_stream) {}

  // Nobody is interested in the answer any more.
  void detach() { owner_ = nullptr; }

  void begin(kube_runtime::HttpRequest request) {
    method_ = known_method(request.method);
    exchange_ = owner_->parts_.gateway.begin(owner_->identity_,
                                             {.method = std::move(request.method),
                                              .target = std::move(request.uri),
                                              .headers = std::move(request.headers),
                                              .body = std::move(request.body)},
                                             *this);
  }

  void on_progress(std::uint64_t bytes) override {
    if (owner_ == nullptr) return;
    set_under_way(bytes);
    owner_->check_answers();
  }
  void on_head(int status, http::Headers headers) override {
    if (owner_ == nullptr) return;
    owner_->series_->answered(method_, status);
    owner_->arrive(id_, Head{.status = status, .headers = std::move(headers)});
  }
  void on_piece(gateway::Piece piece) override {
    if (owner_ == nullptr) return;
    if (is_stream_) {
      // A bookmark stands behind what came before it, and means nothing behind what came later.
      bookmark_.reset();
      set_under_way(0);
      owner_->arrive(id_, std::move(piece));
      return;
    }
    if (auto* const text = std::get_if<std::string>(&piece); text != nullptr && body_.empty()) {
      body_ = std::move(*text);  // All of it usually, and large.
    } else {
      body_ += gateway::text_of(piece);
    }
    set_under_way(body_.size());
    owner_->check_answers();
  }
  void on_bookmark(std::string line) override {
    if (owner_ == nullptr || !is_stream_) return;
    bookmark_ = std::move(line);
    if (owner_->life_.is_resident()) owner_->arrive(id_, gateway::Piece(*take_bookmark()));
  }
  void on_end() override {
    if (owner_ == nullptr) return;
    set_under_way(0);
    if (!is_stream_) owner_->arrive(id_, gateway::Piece(std::move(body_)));
    // The body may have been too much: then nobody is interested any more.
    if (owner_ != nullptr) owner_->arrive(id_, End{});
  }

  [[nodiscard]] bool is_stream() const { return is_stream_; }
  [[nodiscard]] std::optional<std::string> take_bookmark() {
    return std::exchange(bookmark_, std::nullopt);
  }

 private:
  // With an owner.
  void set_under_way(std::uint64_t bytes) {
    owner_->under_way_bytes_ += bytes;
    owner_->under_way_bytes_ -= std::exchange(under_way_, bytes);
  }

  RunningOperator* owner_;
  const std::uint64_t id_;
  const bool is_stream_;
  std::string_view method_ = "other";
  std::uint64_t under_way_ = 0;          // Of the owner's under_way_bytes_.
  std::string body_;                     // Of a call that is no stream.
  std::optional<std::string> bookmark_;  // Held back while the guest sleeps.
  std::unique_ptr<gateway::Exchange> exchange_;
};

RunningOperator::RunningOperator(const Parts& parts, Operator spec, OperatorModule module,
                                 kube::Identity identity, std::shared_ptr<OperatorSeries> series)
    : parts_(parts),
      spec_(std::move(spec)),
      module_(std::move(module)),
      identity_(std::move(identity)),
      series_(std::move(series)),
      life_(life_options(spec_.sleep, *module_.code)),
      requests_(request_rate(spec_.limits)),
      output_(spec_.limits.log_bytes) {}

RunningOperator::~RunningOperator() {
  *is_alive_ = false;
  HANGAR_ASSERT(!life_.is_busy() || stopped_, "an operator is stopped before it is destroyed");
}

void RunningOperator::start() {
  look_later();
}

io::Task<void> RunningOperator::stop() {
  if (stop_.stop_requested()) co_return;
  stop_.request_stop();
  if (life_.is_busy()) {
    stopped_.emplace(parts_.loop);
    co_await stopped_->wait();
  }
  drop_guest();
  *is_alive_ = false;
}

void RunningOperator::press() {
  life_.press();
  look_later();
}

std::uint64_t RunningOperator::resident_bytes() const {
  return guest_ ? guest_->instance().resident_bytes() : 0;
}

std::uint64_t RunningOperator::disk_bytes() const {
  return guest_ ? guest_->instance().disk_bytes() : 0;
}

// Several things that happen in one turn of the loop are one reason to look.
void RunningOperator::look_later() {
  if (std::exchange(will_look_, true)) return;
  parts_.loop.post([this, alive = is_alive_] {
    if (!*alive) return;
    will_look_ = false;
    look();
  });
}

void RunningOperator::look() {
  if (stop_.stop_requested()) return;
  look_timer_.cancel();
  life_.expect_answer(plain_calls_ > 0);
  const Life::Step step = life_.next(io::Loop::now());
  if (step.act != Life::Act::Nothing) {
    parts_.loop.spawn(carry_out(step.act));
    return;
  }
  if (!life_.is_busy() && plain_calls_ == 0) starting_.reset();
  if (step.ask_again) {
    const Duration delay = std::max(Duration::zero(), Duration(*step.ask_again - io::Loop::now()));
    look_timer_ = parts_.loop.after(delay, [this] { look(); });
  }
}

io::Task<void> RunningOperator::carry_out(Life::Act act) {
  if (act == Life::Act::Sleep) {
    co_await fall_asleep();
  } else {
    co_await take_turn(act);
  }
  if (stop_.stop_requested()) {
    if (stopped_) stopped_->set(true);
    co_return;
  }
  look_later();
  parts_.on_change(*this);
}

io::Task<Result<>> RunningOperator::wait_to_start() {
  io::Semaphore::Slot start = HANGAR_CO_TRY(co_await parts_.starts.acquire(stop_.get_token()));
  starting_.emplace(std::move(start),
                    parts_.loop.after(limits::kOperatorStartWait, [this] { starting_.reset(); }));
  co_return Result<>();
}

io::Task<Result<TurnOutcome>> RunningOperator::first_turn() {
  GuestInputs inputs = HANGAR_CO_TRY(co_await parts_.read_inputs(spec_, stop_.get_token()));
  kube_runtime::GuestOptions options{.args = {spec_.key.name},
                                     .environment = std::move(inputs.environment),
                                     .files = std::move(inputs.files),
                                     .memory_bytes_max = spec_.limits.memory_bytes,
                                     .cpu_time_max = spec_.limits.cpu_time_per_wake,
                                     .output_bytes_max = spec_.limits.log_bytes};
  std::ranges::copy(spec_.args, std::back_inserter(options.args));
  const io::Semaphore::Slot slot = co_await parts_.turns.acquire();
  guest_ = std::make_unique<kube_runtime::Guest>(parts_.runtime, module_.code, std::move(options));
  parts_.metrics.starts.add();
  co_return co_await guest_->start(stop_.get_token());
}

io::Task<void> RunningOperator::take_turn(Life::Act act) {
  if (act == Life::Act::Start) {
    if (life_.start_count() > 1) ++series_->restarts;
    drop_guest();
    const Result<> waited = co_await wait_to_start();
    const Instant began = io::Loop::now();
    Result<TurnOutcome> outcome = waited ? co_await first_turn() : std::unexpected(waited.error());
    if (!outcome) outcome = TurnOutcome{.ended = std::unexpected(outcome.error())};
    on_outcome(*std::move(outcome), io::Loop::now() - began);
    co_return;
  }
  const Instant began = io::Loop::now();
  const Instant arrived = first_arrival_.value_or(began);
  const io::Semaphore::Slot slot = co_await parts_.turns.acquire();
  const Instant turn_began = io::Loop::now();
  first_arrival_.reset();
  life_.on_handed_over();
  std::vector<Wakeup> wakeups = take_wakeups();
  const std::size_t count = wakeups.size();
  TurnOutcome outcome = co_await guest_->wake(std::move(wakeups), stop_.get_token());

  ++statistics_.wakes;
  statistics_.last_wake = io::Loop::wall_now();
  statistics_.last_cpu_time = outcome.cpu_time;
  OperatorMetrics& metrics = parts_.metrics;
  metrics.wakes.add();
  metrics.events.add(static_cast<double>(count));
  if (count > 1) metrics.events_coalesced.add(static_cast<double>(count - 1));
  const Instant ended = io::Loop::now();
  metrics.wake_seconds.observe(seconds_of(ended - arrived));
  ++series_->wakes;
  series_->events += count;
  if (count > 1) series_->events_coalesced += count - 1;
  series_->queue_seconds.observe(seconds_of(turn_began - arrived));
  if (outcome.was_asleep) {
    statistics_.last_resume_time = outcome.resume_time;
    metrics.resume_seconds.observe(seconds_of(outcome.resume_time));
    ++series_->resumes;
    series_->resume_time += outcome.resume_time;
  }
  on_outcome(std::move(outcome), ended - turn_began);
}

io::Task<void> RunningOperator::fall_asleep() {
  const Instant began = io::Loop::now();
  const Result<> slept = co_await guest_->sleep(parts_.snapshots);
  statistics_.sleep_problem = slept ? "" : slept.error().message();
  if (slept) {
    parts_.metrics.suspends.add();
    const Duration took = io::Loop::now() - began;
    parts_.metrics.suspend_seconds.observe(seconds_of(took));
    ++series_->suspends;
    series_->suspend_time += took;
  } else {
    parts_.metrics.suspend_failures.add();
    parts_.log.warning("an operator stays resident", {{"namespace", spec_.key.namespace_},
                                                      {"name", spec_.key.name},
                                                      {"error", slept.error().message()}});
  }
  life_.on_sleep_ended(slept ? Life::SleepEnd::Asleep : Life::SleepEnd::StaysResident,
                       io::Loop::now());
  if (life_.phase() == Phase::BackOff) drop_guest();
}

void RunningOperator::keep_output(const TurnOutcome& outcome) {
  const Instant now = io::Loop::now();
  const WallTime time = io::Loop::wall_now();
  std::string text;
  const auto keep = [&](const OperatorLogs::Line& line, std::string_view formatted) {
    parts_.log.info("output", {{"namespace", spec_.key.namespace_},
                               {"name", spec_.key.name},
                               {"stream", std::string(line.stream)},
                               {"text", std::string(line.text)}});
    text += formatted;
  };
  for (const kube_runtime::OutputLine& printed : outcome.output) {
    const bool is_error = printed.stream == kube_runtime::OutputStream::Stderr;
    const OperatorLogs::Line line{
        .time = time, .stream = is_error ? "stderr" : "stdout", .text = printed.text};
    if (const std::string formatted = OperatorLogs::format(line);
        output_.take(formatted.size(), now)) {
      keep(line, formatted);
    } else {
      output_.drop(printed.text.size() + 1);
    }
  }
  output_.drop(outcome.output_dropped_bytes);
  if (const std::optional<std::uint64_t> dropped = output_.tell_dropped(now)) {
    const std::string told = fmt::format("[{} more bytes were dropped: limits.logBytes]", *dropped);
    const OperatorLogs::Line line{.time = time, .stream = "stderr", .text = told};
    keep(line, OperatorLogs::format(line));
  }
  // The guest may never print again.
  if (output_.has_untold()) {
    output_timer_ = parts_.loop.after(std::chrono::seconds(1), [this] {
      if (!stop_.stop_requested()) keep_output({});
    });
  }
  if (text.empty()) return;
  if (const Result<> kept = parts_.output.append({.key = spec_.key, .uid = spec_.uid}, text);
      !kept) {
    parts_.log.warning("output is not kept", {{"error", kept.error().message()}});
  }
}

void RunningOperator::on_outcome(TurnOutcome outcome, Duration took) {
  keep_output(outcome);
  series_->turn_seconds.observe(seconds_of(took));
  series_->cpu_time += outcome.cpu_time;
  if (stop_.stop_requested()) {
    life_.on_turn_ended(Life::TurnEnd::Completed, io::Loop::now());
    return;
  }
  if (!outcome.ended || outcome.exit_code.value_or(0) != 0) {
    life_.on_turn_ended(Life::TurnEnd::Waits, io::Loop::now());
    if (!outcome.ended && outcome.ended.error().kind() == ErrorKind::GuestFault) ++series_->traps;
    fail(outcome.ended ? Error(ErrorKind::GuestFault,
                               fmt::format("the guest exited with code {}", *outcome.exit_code))
                       : std::move(outcome.ended).error());
    return;
  }
  ++series_->turns_succeeded;
  for (const kube_runtime::Delay& delay : outcome.delays) {
    delays_[delay.id] =
        parts_.loop.after(delay.duration, [this, id = delay.id] { arrive(id, End{}); });
  }
  std::ranges::move(outcome.calls, std::back_inserter(waiting_calls_));
  // Nothing is under way: nothing will ever wake it.
  const bool is_done =
      outcome.exit_code || (!is_overflowing_ && calls_.empty() && delays_.empty() &&
                            waiting_calls_.empty() && arrivals_.empty());
  life_.on_turn_ended(is_done ? Life::TurnEnd::Completed : Life::TurnEnd::Waits, io::Loop::now());
  if (life_.phase() == Phase::Running) {
    begin_calls();
  } else {
    drop_guest();
  }
}

void RunningOperator::fail(Error error) {
  parts_.metrics.failures.add();
  ++series_->failures;
  ++statistics_.failures;
  statistics_.last_error = error.message();
  life_.fail(io::Loop::now());
  if (!life_.is_busy()) drop_guest();
  parts_.loop.post([this, alive = is_alive_, error = std::move(error)] {
    if (*alive) parts_.on_failure(*this, error);
  });
  look_later();
}

// With it goes all that was meant for it.
void RunningOperator::drop_guest() {
  starting_.reset();
  drop_answers();
  is_overflowing_ = false;
  guest_.reset();
}

void RunningOperator::drop_answers() {
  requests_timer_.cancel();
  waiting_calls_.clear();
  delays_.clear();
  arrivals_.clear();
  arrivals_bytes_ = 0;
  under_way_bytes_ = 0;
  first_arrival_.reset();
  plain_calls_ = 0;
  for (const auto& [id, call] : calls_)
    call->detach();
  // Later: one of them may be who called us.
  if (!calls_.empty()) parts_.loop.post([calls = std::exchange(calls_, {})] {});
}

void RunningOperator::begin_calls() {
  requests_timer_.cancel();
  const bool is_limited = spec_.limits.requests_per_second > 0;
  auto next = waiting_calls_.begin();
  for (; next != waiting_calls_.end(); ++next) {
    if (is_limited && !requests_.try_take(io::Loop::now())) break;
    auto& call = calls_[next->id];
    call = std::make_unique<Call>(*this, next->id, next->is_stream);
    if (!next->is_stream) ++plain_calls_;
    ++statistics_.requests;
    parts_.metrics.requests.add();
    call->begin(std::move(next->request));
  }
  waiting_calls_.erase(waiting_calls_.begin(), next);
  if (waiting_calls_.empty()) {
    waiting_calls_.shrink_to_fit();
    return;
  }
  const std::chrono::duration<double> one_more(1 / spec_.limits.requests_per_second);
  requests_timer_ =
      parts_.loop.after(std::chrono::duration_cast<Duration>(one_more), [this] { begin_calls(); });
}

// The guest does not take what it asked for: it starts anew, without it.
void RunningOperator::overflow() {
  if (std::exchange(is_overflowing_, true)) return;
  // At once: its turn, if it is in one, may be long.
  drop_answers();
  fail({ErrorKind::LimitExceeded,
        fmt::format("more than {} MiB of answers wait for the guest; it should ask for less at a "
                    "time (limit, selectors)",
                    limits::kGuestAnswersBytesMax / limits::kMiB)});
}

void RunningOperator::check_answers() {
  if (arrivals_bytes_ + under_way_bytes_ > limits::kGuestAnswersBytesMax) overflow();
}

void RunningOperator::arrive(std::uint64_t id, std::variant<Head, gateway::Piece, End> what) {
  if (!guest_ || is_overflowing_) return;
  if (const auto* const piece = std::get_if<gateway::Piece>(&what)) {
    arrivals_bytes_ += size_of(*piece);
  }
  check_answers();
  if (!guest_ || is_overflowing_) return;
  if (!first_arrival_) first_arrival_ = io::Loop::now();
  arrivals_.push_back({.id = id, .what = std::move(what)});
  // The head of a plain answer alone is nothing that the guest can use.
  const auto call = calls_.find(id);
  const bool is_head_only = std::holds_alternative<Head>(arrivals_.back().what);
  if (is_head_only && call != calls_.end() && !call->second->is_stream()) return;
  life_.on_arrival();
  look_later();
}

// In order of arrival. What has ended is forgotten here.
std::vector<Wakeup> RunningOperator::take_wakeups() {
  std::vector<Wakeup> wakeups;
  wakeups.reserve(arrivals_.size());
  for (Arrival& arrival : std::exchange(arrivals_, {})) {
    const auto call = calls_.find(arrival.id);
    const bool is_plain = call != calls_.end() && !call->second->is_stream();
    if (auto* const head = std::get_if<Head>(&arrival.what)) {
      wakeups.push_back({.id = arrival.id,
                         .bytes = kube_runtime::encode_response_meta(head->status, head->headers)});
    } else if (auto* const piece = std::get_if<gateway::Piece>(&arrival.what)) {
      wakeups.push_back(
          {.id = arrival.id, .finished = is_plain, .bytes = gateway::text_of(*piece)});
    } else {
      // A plain answer ended with its body.
      if (!is_plain) wakeups.push_back({.id = arrival.id, .finished = true, .is_null = true});
      if (is_plain) --plain_calls_;
      if (call != calls_.end()) calls_.erase(call);
      delays_.erase(arrival.id);
    }
  }
  arrivals_bytes_ = 0;
  for (const auto& [id, call] : calls_) {
    if (std::optional<std::string> line = call->take_bookmark()) {
      wakeups.push_back({.id = id, .bytes = *std::move(line)});
    }
  }
  return wakeups;
}

}  // namespace hangar::operators
