#include "operators/running_operator.h"

#include "base/assert.h"
#include "base/in_slot.h"
#include "base/limits.h"
#include "base/seconds.h"
#include "io/exception.h"
#include "operators/limits.h"
#include "recorder/limits.h"
#include "recorder/record.h"

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

Life::Options life_options(const SleepPolicy& sleep, const wasm::SleepableModule& module) {
  const bool may_sleep = sleep.kind != SleepPolicy::Kind::Never && !module.obstacle();
  return {.sleep_after = may_sleep ? std::optional(sleep.after) : std::nullopt};
}

std::optional<TokenBucket> request_rate(const OperatorLimits& limits) {
  if (limits.requests_per_second <= 0) return std::nullopt;
  return TokenBucket(
      {.per_second = limits.requests_per_second, .burst = 2 * limits.requests_per_second});
}

kube::Identity identity_of(const kube::ObjectKey& key, std::string_view service_account) {
  if (service_account.empty()) return {};
  return kube::service_account(key.namespace_, service_account);
}

// From microseconds (a resume) to the longest turn.
std::vector<double> wake_buckets() {
  return {0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01,
          0.025,   0.05,   0.1,     0.25,   0.5,   1,      2.5,   10};
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
class RunningOperator::Call final : public gateway::Answer, public slots::InSlot {
 public:
  Call(RunningOperator& owner, std::uint64_t id, bool is_stream, std::uint64_t turn)
      : owner_(&owner), id_(id), is_stream_(is_stream), turn_(static_cast<std::uint32_t>(turn)) {}

  // Nobody is interested in the answer any more.
  void detach() { owner_ = nullptr; }
  // The same, of one among others that go on.
  void give_up() {
    set_under_way(0);
    record_answer(/*status=*/0);
    detach();
  }

  void begin(const kube::Identity& identity, kube_runtime::HttpRequest request) {
    method_ = known_method(request.method);
    exchange_ = owner_->parts_.gateway.begin(identity,
                                             {.method = std::move(request.method),
                                              .target = std::move(request.uri),
                                              .headers = std::move(request.headers),
                                              .body = std::move(request.body)},
                                             *this);
  }

  void on_understood(const gateway::RequestTarget& target,
                     const gateway::Request& request) override {
    if (owner_ == nullptr || owner_->parts_.recorder == nullptr) return;
    recorder::Asked asked = asked_of(target, request);
    asked.guest = owner_->recorded_guest();
    asked.turn = turn_;
    asked.id = id_;
    asked.at = io::Loop::now();
    owner_->parts_.recorder->record(asked);
  }
  void on_progress(std::uint64_t bytes) override {
    if (owner_ == nullptr) return;
    set_under_way(bytes);
  }
  void on_head(int status, http::Headers headers) override {
    if (owner_ == nullptr) return;
    owner_->series_.series().answered(method_, status);
    status_ = static_cast<std::uint16_t>(status);
    owner_->arrive(id_, Mailbox::Head{.status = status, .headers = std::move(headers)});
  }
  void on_piece(gateway::Piece piece) override {
    if (owner_ == nullptr) return;
    if (is_stream_) {
      // A bookmark stands behind what came before it, and means nothing behind what came later.
      static_cast<void>(take_bookmark());
      set_under_way(0);
      owner_->arrive(id_, std::move(piece));
      return;
    }
    if (auto* const text = std::get_if<std::string>(&piece); text != nullptr && text_.empty()) {
      text_ = std::move(*text);  // All of it usually, and large.
    } else {
      text_ += gateway::text_of(piece);
    }
    set_under_way(text_.size());
  }
  void on_bookmark(std::string line) override {
    if (owner_ == nullptr || !is_stream_) return;
    text_ = std::move(line);
    if (owner_->life_.is_resident()) owner_->arrive(id_, gateway::Piece(take_bookmark()));
  }
  void on_end() override {
    if (owner_ == nullptr) return;
    set_under_way(0);
    record_answer(status_);
    if (!is_stream_) owner_->arrive(id_, gateway::Piece(std::move(text_)));
    // The body may have been too much: then nobody is interested any more.
    if (owner_ != nullptr) owner_->arrive(id_, Mailbox::End{});
  }

  [[nodiscard]] std::uint64_t id() const { return id_; }
  [[nodiscard]] bool is_stream() const { return is_stream_; }
  // Of a stream; empty when there is none.
  [[nodiscard]] std::string take_bookmark() { return std::exchange(text_, {}); }
  // For the recorder. With an owner; status zero: nobody waits for the answer any more.
  void record_answer(int status) const {
    if (owner_->parts_.recorder == nullptr) return;
    const bool is_write = method_ != KnownMethod::Get && method_ != KnownMethod::Head &&
                          method_ != KnownMethod::Options;
    const std::string_view body = is_stream_ || status == 0 ? std::string_view() : text_;
    const AnsweredObject written(is_write ? body : std::string_view());
    owner_->parts_.recorder->record(recorder::Answered{.guest = owner_->recorded_guest(),
                                                       .id = id_,
                                                       .at = io::Loop::now(),
                                                       .status = static_cast<std::uint64_t>(status),
                                                       .bytes = body.size(),
                                                       .is_write = is_write,
                                                       .object = written.object()});
  }

 private:
  // With an owner.
  void set_under_way(std::uint64_t bytes) {
    if (bytes == under_way_) return;
    const std::uint64_t before = std::exchange(under_way_, bytes);
    if (owner_->work().mailbox.set_under_way(before, bytes) == Mailbox::Room::Overflow) {
      owner_->overflow();
    }
  }

  RunningOperator* owner_;
  const std::uint64_t id_;
  const bool is_stream_;
  KnownMethod method_ = KnownMethod::Other;
  // In the room that is left before the next member: thousands of these sleep.
  std::uint16_t status_ = 0;
  const std::uint32_t turn_;
  std::uint64_t under_way_ = 0;  // Of what the owner's mailbox counts so.
  // Of a stream the bookmark that is held back while the guest sleeps; else the body so far.
  std::string text_;
  std::unique_ptr<gateway::Exchange> exchange_;
};

RunningOperator::RunningOperator(const Parts& parts, const Operator& spec, OperatorModule module)
    : parts_(parts),
      key_(spec.key),
      packed_({.spec = spec, .resolved = std::move(module.resolved)}),
      module_(std::move(module.code)),
      series_(parts.series.take()),
      life_(life_options(spec.sleep, *module_)),
      requests_(request_rate(spec.limits)) {}

RunningOperator::~RunningOperator() {
  HANGAR_ASSERT(!life_.is_busy() || is_stopped_, "an operator is stopped before it is destroyed");
}

void RunningOperator::start() {
  look_later();
}

io::Task<void> RunningOperator::stop() {
  if (std::exchange(is_stopped_, true)) co_return;
  if (life_.is_busy()) {
    work().stop.request_stop();
    work().stopped.emplace(parts_.loop);
    co_await work().stopped->wait();
  }
  drop_guest();
  work_.reset();
  output_.reset();
}

void RunningOperator::press() {
  life_.press();
  look_later();
}

std::uint64_t RunningOperator::resident_bytes() const {
  return guest_ ? guest_->resident_bytes() : 0;
}

std::uint64_t RunningOperator::disk_bytes() const {
  return guest_ ? guest_->disk_bytes() : 0;
}

const RunningOperator::Troubles& RunningOperator::troubles() const {
  static const Troubles none;
  return troubles_ ? *troubles_ : none;
}

// Several things that happen in one turn of the loop are one reason to look.
void RunningOperator::look_later() {
  if (std::exchange(will_look_, true)) return;
  parts_.loop.post([weak = weak_from_this()] {
    const std::shared_ptr<RunningOperator> self = weak.lock();
    if (!self) return;
    self->will_look_ = false;
    self->look();
  });
}

void RunningOperator::look() {
  if (is_stopped_) return;
  if (work_) work_->look_timer.cancel();
  life_.expect_answer(plain_calls_ > 0);
  const Life::Step step = life_.next(io::Loop::now());
  if (step.act != Life::Act::Nothing) {
    parts_.loop.spawn(carry_out(step.act));
    return;
  }
  if (!life_.is_busy() && plain_calls_ == 0 && work_) work_->starting.reset();
  if (step.ask_again) {
    const Duration delay = std::max(Duration::zero(), Duration(*step.ask_again - io::Loop::now()));
    work().look_timer = parts_.loop.after(delay, [this] { look(); });
  }
}

io::Task<void> RunningOperator::carry_out(Life::Act act) {
  const io::Loop::Activity activity(parts_.loop,
                                    fmt::format("operator {}/{}", key_.namespace_, key_.name));
  const Result<> carried_out =
      co_await io::contained(act == Life::Act::Sleep ? fall_asleep() : take_turn(act));
  if (!carried_out) give_up(act, carried_out.error());
  if (is_stopped_) {
    work().stopped->set(true);
    co_return;
  }
  if (!life_.is_resident()) rest();
  look_later();
  parts_.on_change(*this);
}

// The act threw somewhere in its middle.
void RunningOperator::give_up(Life::Act act, const Error& error) {
  if (act == Life::Act::Sleep && life_.is_busy()) {
    life_.on_sleep_ended(Life::SleepEnd::StaysResident, io::Loop::now());
  } else if (life_.is_busy()) {
    life_.on_turn_ended(Life::TurnEnd::Waits, io::Loop::now());
  }
  if (!is_stopped_) fail(error);
}

io::Task<Result<>> RunningOperator::wait_to_start() {
  budget::FairSlots::Slot start =
      HANGAR_CO_TRY(co_await parts_.starts.acquire(consumer(), {}, work().stop.get_token()));
  work().starting.emplace(std::move(start), parts_.loop.after(limits::kOperatorStartWait,
                                                              [this] { work().starting.reset(); }));
  co_return Result<>();
}

io::Task<Result<>> RunningOperator::wait_for_memory() {
  Result<std::optional<budget::Reservation>> memory = co_await parts_.runtime.engine().reserve(
      consumer(), guest_->memory_bytes_needed(), work().stop.get_token(),
      [this](const budget::Shortage& shortage) {
        work().shortage = shortage;
        parts_.on_shortage(*this);
      });
  if (shortage() != nullptr) {
    work().shortage.reset();
    parts_.on_shortage(*this);
  }
  if (!memory) co_return std::unexpected(std::move(memory).error());
  guest_->provide(*std::move(memory));
  co_return Result<>();
}

// What the last turn took is what this one is expected to.
io::Task<Result<budget::FairSlots::Slot>> RunningOperator::wait_for_turn() {
  co_return co_await parts_.turns.acquire(consumer(), {.cost = expected_cost()},
                                          work().stop.get_token());
}

std::uint64_t RunningOperator::expected_cost() const {
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(statistics_.last_cpu_time.count()));
}

void RunningOperator::charge_turn(budget::FairSlots::Slot& slot, const TurnOutcome& outcome) {
  const auto used = static_cast<std::uint64_t>(outcome.cpu_time.count());
  slot.charge(used - std::min(used, expected_cost()));
}

io::Task<Result<TurnOutcome>> RunningOperator::first_turn() {
  const std::stop_token stop = work().stop.get_token();
  const Operator spec = packed_.unpack(key_).spec;
  GuestInputs inputs = HANGAR_CO_TRY(co_await parts_.read_inputs(spec, stop));
  kube_runtime::GuestOptions options{.args = {spec.key.name},
                                     .environment = std::move(inputs.environment),
                                     .files = std::move(inputs.files),
                                     .in_pod = std::move(inputs.in_pod),
                                     .memory_bytes_max = spec.limits.memory_bytes,
                                     .cpu_time_max = spec.limits.cpu_time_per_wake,
                                     .output_bytes_max = spec.limits.log_bytes};
  std::ranges::copy(spec.args, std::back_inserter(options.args));
  guest_ = std::make_unique<kube_runtime::Guest>(parts_.runtime, module_, std::move(options));
  HANGAR_CO_TRY(co_await wait_for_memory());
  budget::FairSlots::Slot slot = HANGAR_CO_TRY(co_await wait_for_turn());
  parts_.metrics.starts.add();
  TurnOutcome outcome = co_await guest_->start(stop, consumer());
  charge_turn(slot, outcome);
  co_return outcome;
}

io::Task<void> RunningOperator::take_turn(Life::Act act) {
  if (act == Life::Act::Start) {
    if (life_.start_count() > 1) ++series_.series().restarts;
    drop_guest();
    const Instant asked = io::Loop::now();
    const Result<> waited = co_await wait_to_start();
    const Instant began = io::Loop::now();
    Result<TurnOutcome> outcome = waited ? co_await first_turn() : std::unexpected(waited.error());
    if (!outcome) outcome = TurnOutcome{.ended = std::unexpected(outcome.error())};
    record_turn(*outcome, Woken(), asked, began);
    on_outcome(*std::move(outcome), io::Loop::now() - began);
    co_return;
  }
  const Instant began = io::Loop::now();
  const Instant arrived = work().mailbox.first_arrival().value_or(began);
  const Result<> has_memory =
      guest_->memory_bytes_needed() > 0 ? co_await wait_for_memory() : Result<>();
  Result<budget::FairSlots::Slot> slot =
      has_memory ? co_await wait_for_turn() : std::unexpected(has_memory.error());
  if (!slot && is_stopped_) {
    // Nobody waits behind others' turns to be gone.
    life_.on_turn_ended(Life::TurnEnd::Completed, io::Loop::now());
    co_return;
  }
  if (!slot) {
    on_outcome(TurnOutcome{.ended = std::unexpected(std::move(slot).error())}, Duration::zero());
    co_return;
  }
  const Instant turn_began = io::Loop::now();
  life_.on_handed_over();
  Woken woken;
  std::vector<Wakeup> wakeups = take_wakeups(woken);
  const std::size_t count = wakeups.size();
  TurnOutcome outcome =
      co_await guest_->wake(std::move(wakeups), work().stop.get_token(), consumer());
  charge_turn(*slot, outcome);

  ++statistics_.wakes;
  statistics_.last_wake = io::Loop::wall_now();
  statistics_.last_cpu_time = outcome.cpu_time;
  OperatorMetrics& metrics = parts_.metrics;
  metrics.wakes.add();
  metrics.events.add(static_cast<double>(count));
  if (count > 1) metrics.events_coalesced.add(static_cast<double>(count - 1));
  const Instant ended = io::Loop::now();
  metrics.wake_seconds.observe(in_seconds(ended - arrived));
  OperatorSeries& series = series_.series();
  ++series.wakes;
  series.events += count;
  if (count > 1) series.events_coalesced += count - 1;
  series.queue_seconds.observe(in_seconds(turn_began - arrived));
  if (outcome.was_asleep) {
    statistics_.last_resume_time = outcome.resume_time;
    metrics.resume_seconds.observe(in_seconds(outcome.resume_time));
    ++series.resumes;
    series.resume_time += outcome.resume_time;
  }
  record_turn(outcome, woken, arrived, turn_began);
  on_outcome(std::move(outcome), ended - turn_began);
}

io::Task<void> RunningOperator::fall_asleep() {
  const Instant began = io::Loop::now();
  const Result<> slept = co_await guest_->sleep(parts_.snapshots, consumer().tenant);
  if (slept) {
    if (troubles_) troubles_->sleep_problem.clear();
    parts_.metrics.suspends.add();
    const Duration took = io::Loop::now() - began;
    parts_.metrics.suspend_seconds.observe(in_seconds(took));
    OperatorSeries& series = series_.series();
    ++series.suspends;
    series.suspend_time += took;
  } else {
    troubles_to_change().sleep_problem = slept.error().message();
    parts_.metrics.suspend_failures.add();
    parts_.log.warning(
        "an operator stays resident",
        {{"namespace", key_.namespace_}, {"name", key_.name}, {"error", slept.error().message()}});
  }
  record_slept(began, slept.has_value());
  life_.on_sleep_ended(slept ? Life::SleepEnd::Asleep : Life::SleepEnd::StaysResident,
                       io::Loop::now());
  if (life_.phase() == Phase::BackOff) drop_guest();
}

void RunningOperator::rest() {
  if (work_ && plain_calls_ == 0) work_->starting.reset();
  series_.rest();
  calls_.shrink_to_fit();
  delays_.shrink_to_fit();
  if (output_ && output_->is_as_new()) output_.reset();
  if (work_ && work_->is_nothing()) work_.reset();
}

recorder::Guest RunningOperator::recorded_guest() const {
  const auto since_epoch =
      std::chrono::floor<std::chrono::microseconds>(life_.started_at().time_since_epoch());
  return {.contract = recorder::Contract::Operator,
          .namespace_ = key_.namespace_,
          .name = key_.name,
          .instance = static_cast<std::uint64_t>(since_epoch.count())};
}

void RunningOperator::record_turn(const TurnOutcome& outcome, const Woken& woken, Instant arrived,
                                  Instant began) const {
  if (parts_.recorder == nullptr) return;
  const PackedOperator::Origin origin = packed_.origin();
  const std::string user = identity_of(key_, origin.service_account).user;
  const std::string module = module_->digest().to_hex();
  recorder::Turn turn{.guest = recorded_guest(),
                      .uid = origin.uid,
                      .user = user,
                      .module = module,
                      .number = turn_number(),
                      .arrived = arrived,
                      .began = began,
                      .ended = io::Loop::now(),
                      .resume = outcome.resume_time,
                      .cpu = outcome.cpu_time,
                      .was_asleep = outcome.was_asleep,
                      .memory_bytes = resident_bytes(),
                      .asked = outcome.calls.size(),
                      .wakings = woken.wakings(),
                      .wakings_left_out = woken.left_out()};
  if (!outcome.ended || outcome.exit_code.value_or(0) != 0) {
    turn.outcome = recorder::Turn::Outcome::Failed;
  } else if (outcome.exit_code) {
    turn.outcome = recorder::Turn::Outcome::Completed;
  }
  turn.printed_bytes = outcome.output_dropped_bytes;
  for (const kube_runtime::OutputLine& line : outcome.output)
    turn.printed_bytes += line.text.size();
  for (const kube_runtime::Delay& delay : outcome.delays) {
    if (turn.timers.size() == recorder::kTimersMax) break;
    turn.timers.push_back({.id = delay.id, .after = delay.duration});
  }
  turn.timers_left_out = outcome.delays.size() - turn.timers.size();
  parts_.recorder->record(turn);
}

void RunningOperator::record_slept(Instant began, bool is_asleep) const {
  if (parts_.recorder == nullptr) return;
  const Instant now = io::Loop::now();
  parts_.recorder->record(recorder::Slept{.guest = recorded_guest(),
                                          .turn = turn_number(),
                                          .at = now,
                                          .took = now - began,
                                          .disk_bytes = disk_bytes(),
                                          .is_asleep = is_asleep});
}

void RunningOperator::keep_output(const TurnOutcome& outcome) {
  if (outcome.output.empty() && outcome.output_dropped_bytes == 0) return;
  if (!output_) {
    output_ = std::make_unique<output::Printout>(
        output::Printout::Sinks{.loop = parts_.loop, .files = parts_.output, .log = parts_.log},
        output::LogFiles::Owner{.key = key_, .uid = outline().spec.uid},
        outline().spec.limits.log_bytes, "limits.logBytes");
  }
  std::vector<output::Printout::Line> lines;
  for (const kube_runtime::OutputLine& printed : outcome.output) {
    const bool is_error = printed.stream == kube_runtime::OutputStream::Stderr;
    lines.push_back({.stream = is_error ? "stderr" : "stdout", .text = printed.text});
  }
  output_->keep(lines, outcome.output_dropped_bytes);
}

void RunningOperator::on_outcome(TurnOutcome outcome, Duration took) {
  keep_output(outcome);
  OperatorSeries& series = series_.series();
  series.turn_seconds.observe(in_seconds(took));
  series.cpu_time += outcome.cpu_time;
  if (is_stopped_) {
    life_.on_turn_ended(Life::TurnEnd::Completed, io::Loop::now());
    return;
  }
  if (!outcome.ended || outcome.exit_code.value_or(0) != 0) {
    life_.on_turn_ended(Life::TurnEnd::Waits, io::Loop::now());
    if (!outcome.ended && outcome.ended.error().kind() == ErrorKind::GuestFault) ++series.traps;
    fail(outcome.ended ? Error(ErrorKind::GuestFault,
                               fmt::format("the guest exited with code {}", *outcome.exit_code))
                       : std::move(outcome.ended).error());
    return;
  }
  ++series.turns_succeeded;
  cancel(outcome.cancelled);
  for (const kube_runtime::Delay& delay : outcome.delays) {
    delays_.push_back({.id = delay.id,
                       .timer = parts_.loop.after(
                           delay.duration, [this, id = delay.id] { arrive(id, Mailbox::End{}); })});
  }
  Work& work = this->work();
  for (kube_runtime::HttpCall& call : outcome.calls)
    work.waiting_calls.push_back({.call = std::move(call), .turn = turn_number()});
  // Nothing is under way: nothing will ever wake it.
  const bool is_done =
      outcome.exit_code || (!work.mailbox.is_closed() && calls_.empty() && delays_.empty() &&
                            work.waiting_calls.empty() && work.mailbox.is_empty());
  life_.on_turn_ended(is_done ? Life::TurnEnd::Completed : Life::TurnEnd::Waits, io::Loop::now());
  if (life_.phase() == Phase::Running) {
    begin_calls();
  } else {
    drop_guest();
  }
}

void RunningOperator::fail(Error error) {
  parts_.metrics.failures.add();
  ++series_.series().failures;
  ++statistics_.failures;
  troubles_to_change().last_error = error.message();
  life_.fail(io::Loop::now());
  if (!life_.is_busy()) drop_guest();
  parts_.loop.post([weak = weak_from_this(), error = std::move(error)] {
    const std::shared_ptr<RunningOperator> self = weak.lock();
    if (self && !self->is_stopped_) self->parts_.on_failure(*self, error);
  });
  look_later();
}

// With it goes all that was meant for it.
void RunningOperator::drop_guest() {
  if (work_) work_->starting.reset();
  drop_answers();
  if (work_) work_->mailbox.reopen();
  guest_.reset();
}

void RunningOperator::drop_answers() {
  if (work_) {
    work_->requests_timer.cancel();
    work_->waiting_calls.clear();
    work_->mailbox.clear();
  }
  delays_.clear();
  plain_calls_ = 0;
  for (const std::unique_ptr<Call>& call : calls_) {
    if (!call->is_stream()) call->record_answer(/*status=*/0);
    call->detach();
  }
  // Later: one of them may be who called us.
  if (!calls_.empty()) parts_.loop.post([calls = std::exchange(calls_, {})] {});
}

// The guest does not wait for these any more.
void RunningOperator::cancel(const std::vector<std::uint64_t>& ids) {
  for (const std::uint64_t id : ids) {
    if (const auto call = find_call(id); call != calls_.end()) {
      if (!(*call)->is_stream()) --plain_calls_;
      (*call)->give_up();
      // Later: it may be what the gateway works on.
      parts_.loop.post([ended = std::move(*call)] {});
      calls_.erase(call);
    } else if (const auto delay = std::ranges::lower_bound(delays_, id, {}, &Delay::id);
               delay != delays_.end() && delay->id == id) {
      delays_.erase(delay);
    }
  }
  if (!work_ || ids.empty()) return;
  std::erase_if(work_->waiting_calls, [&ids](const Work::WaitingCall& waiting) {
    return std::ranges::find(ids, waiting.call.id) != ids.end();
  });
  work_->mailbox.drop(ids);
}

RunningOperator::Calls::iterator RunningOperator::find_call(std::uint64_t id) {
  const auto found = std::ranges::lower_bound(calls_, id, {}, &Call::id);
  return found != calls_.end() && (*found)->id() == id ? found : calls_.end();
}

void RunningOperator::begin_calls() {
  Work& work = this->work();
  work.requests_timer.cancel();
  if (work.waiting_calls.empty()) return;
  const kube::Identity identity = identity_of(key_, packed_.origin().service_account);
  auto next = work.waiting_calls.begin();
  for (; next != work.waiting_calls.end(); ++next) {
    if (requests_ && !requests_->try_take(io::Loop::now())) break;
    kube_runtime::HttpCall& asked = next->call;
    Call& call =
        *calls_.emplace_back(std::make_unique<Call>(*this, asked.id, asked.is_stream, next->turn));
    if (!asked.is_stream) ++plain_calls_;
    ++statistics_.requests;
    parts_.metrics.requests.add();
    call.begin(identity, std::move(asked.request));
  }
  work.waiting_calls.erase(work.waiting_calls.begin(), next);
  if (work.waiting_calls.empty()) return;
  const std::chrono::duration<double> one_more(1 / requests_->options().per_second);
  work.requests_timer =
      parts_.loop.after(std::chrono::duration_cast<Duration>(one_more), [this] { begin_calls(); });
}

// The guest does not take what it asked for: it starts anew, without it.
void RunningOperator::overflow() {
  // At once: its turn, if it is in one, may be long.
  drop_answers();
  fail({ErrorKind::LimitExceeded,
        fmt::format("more than {} MiB of answers wait for the guest; it should ask for less at a "
                    "time (limit, selectors)",
                    limits::kGuestAnswersBytesMax / limits::kMiB)});
}

void RunningOperator::arrive(std::uint64_t id, decltype(Mailbox::Arrival::what) what) {
  if (!guest_) return;
  const bool is_head_only = std::holds_alternative<Mailbox::Head>(what);
  const Mailbox::Room room =
      work().mailbox.put({.id = id, .what = std::move(what)}, io::Loop::now());
  if (room == Mailbox::Room::Overflow) overflow();
  if (room != Mailbox::Room::Enough) return;
  // The head of a plain answer alone is nothing that the guest can use.
  const auto call = find_call(id);
  if (is_head_only && call != calls_.end() && !(*call)->is_stream()) return;
  life_.on_arrival();
  look_later();
}

// In order of arrival. What has ended is forgotten here.
std::vector<Wakeup> RunningOperator::take_wakeups(Woken& woken) {
  std::vector<Wakeup> wakeups;
  wakeups.reserve(work().mailbox.size());
  std::vector<std::uint64_t> ended_delays;
  for (Mailbox::Arrival& arrival : work().mailbox.take()) {
    const auto call = find_call(arrival.id);
    const bool is_plain = call != calls_.end() && !(*call)->is_stream();
    if (parts_.recorder != nullptr) {
      woken.add(arrival, call == calls_.end() ? Woken::Source::Timer
                         : is_plain           ? Woken::Source::Plain
                                              : Woken::Source::Stream);
    }
    if (auto* const head = std::get_if<Mailbox::Head>(&arrival.what)) {
      wakeups.push_back({.id = arrival.id,
                         .bytes = kube_runtime::encode_response_meta(head->status, head->headers)});
    } else if (auto* const piece = std::get_if<gateway::Piece>(&arrival.what)) {
      wakeups.push_back(
          {.id = arrival.id, .finished = is_plain, .bytes = gateway::text_of(*piece)});
    } else {
      // A plain answer ended with its body.
      if (!is_plain) wakeups.push_back({.id = arrival.id, .finished = true, .is_null = true});
      if (is_plain) --plain_calls_;
      if (call != calls_.end()) {
        calls_.erase(call);
      } else {
        ended_delays.push_back(arrival.id);
      }
    }
  }
  // At once: a guest may have made them by the thousand.
  std::ranges::sort(ended_delays);
  std::erase_if(delays_, [&](const Delay& delay) {
    return std::ranges::binary_search(ended_delays, delay.id);
  });
  for (const std::unique_ptr<Call>& call : calls_) {
    if (!call->is_stream()) continue;
    if (std::string line = call->take_bookmark(); !line.empty()) {
      wakeups.push_back({.id = call->id(), .bytes = std::move(line)});
    }
  }
  return wakeups;
}

}  // namespace hangar::operators
