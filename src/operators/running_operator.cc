#include "operators/running_operator.h"

#include "base/assert.h"
#include "base/limits.h"
#include "io/exception.h"
#include "operators/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

namespace hangar::operators {

namespace kube_runtime = abi::kube_runtime;

using kube_runtime::Listener;
using kube_runtime::TurnOutcome;
using kube_runtime::Wakeup;

namespace {

bool may_sleep(const SleepPolicy& sleep, const wasm::SleepableModule& module) {
  return sleep.kind != SleepPolicy::Kind::Never && !module.obstacle();
}

// For reports of a blocked loop.
std::string_view name_of(Life::Act act) {
  switch (act) {
    case Life::Act::Nothing:
      return "nothing";
    case Life::Act::Start:
      return "start";
    case Life::Act::Wake:
      return "turn";
    case Life::Act::Sleep:
      return "suspend";
    case Life::Act::Load:
      return "resume";
  }
  return "?";
}

// A guest that cannot sleep, or has not begun, starts anew.
Error evicted() {
  return {
      ErrorKind::LimitExceeded,
      "the guest had to make room: its namespace had more than an equal part of the memory that "
      "guests of other namespaces were waiting for"};
}

Life::Options life_options(const SleepPolicy& sleep, const wasm::SleepableModule& module) {
  return {.sleep_after = may_sleep(sleep, module) ? std::optional(sleep.after) : std::nullopt};
}

// Nobody knows what another server does for a request, not even for one that reads.
bool may_change_something(const kube_runtime::HttpCall& call) {
  return is_write(known_method(call.request.method)) || is_outbound(call.request.uri);
}

foresight::Moment moment() {
  return {.at = io::Loop::now(), .wall = io::Loop::wall_now()};
}

}  // namespace

RunningOperator::RunningOperator(const Parts& parts, const Operator& spec, OperatorModule module)
    : parts_(parts),
      key_(spec.key),
      packed_({.spec = spec, .resolved = std::move(module.resolved)}),
      module_(std::move(module.code)),
      life_(life_options(spec.sleep, *module_)),
      ledger_(parts.ledger, key_, life_),
      requests_(parts.requests, *this, ledger_, spec.limits) {
  if (spec.record == Recording::Bodies) ledger_.record_bodies(spec);
  if (spec.sleep.kind == SleepPolicy::Kind::Predictive && !module_->obstacle()) {
    planner_ =
        std::make_unique<SleepPlanner>(parts.planners, key_.namespace_, spec.sleep,
                                       parts_.guests.loads_ahead(), [this] { look_later(); });
  }
}

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

void RunningOperator::evict() {
  life_.evict();
  if (work_) work_->turn_wait.request_stop();
  look_later();
}

void RunningOperator::hold() {
  life_.hold();
  // A guest that waits for its turn, and sleeps, need not have it.
  if (work_ && life_.phase() != Phase::Starting) work_->turn_wait.request_stop();
  look_later();
}

std::string RunningOperator::why_awake() const {
  if (const std::string* const obstacle = module_->obstacle()) return "the module " + *obstacle;
  switch (life_.phase()) {
    case Phase::Starting:
      return "it had not ended its first turn";
    case Phase::BackOff:
      return "it had failed, and was waiting to be restarted";
    case Phase::Completed:
      return "it had completed";
    case Phase::Running:
    case Phase::Asleep:
      break;
  }
  if (outline().spec.sleep.kind == SleepPolicy::Kind::Never) return "spec.sleep.policy is Never";
  if (!troubles().sleep_problem.empty()) {
    return "it could not be suspended: " + troubles().sleep_problem;
  }
  return life_.is_busy() ? "its turn did not end in time"
                         : "an answer that it awaited did not arrive in time";
}

Result<CarriedOperator> RunningOperator::carry() {
  if (!life_.is_asleep() || !guest_) return hangar::fail(ErrorKind::Unavailable, why_awake());
  CarriedRequests requests = HANGAR_TRY(requests_.carry());
  abi::kube_runtime::CarriedGuest guest = HANGAR_TRY(guest_->carry());
  const Operator spec = outline().spec;
  CarriedOperator carried{.key = key_,
                          .uid = spec.uid,
                          .generation = spec.generation,
                          .module = module_->digest(),
                          .image = module_->image_number(),
                          .started_at = life_.started_at(),
                          .idle_since = life_.idle_since(),
                          .start_count = life_.start_count(),
                          .serves_metrics = serves_metrics_,
                          .takes_webhooks = takes_webhooks_,
                          .figures = ledger_.figures(),
                          .guest = std::move(guest),
                          .requests = std::move(requests)};
  is_stopped_ = true;
  drop_guest();
  work_.reset();
  output_.reset();
  return carried;
}

Result<> RunningOperator::take_over(CarriedOperator carried) {
  guest_ = HANGAR_TRY(parts_.guests.take_over(module_->shared(), options_of(outline().spec),
                                              guest_events(), consumer().tenant,
                                              std::move(carried.guest)));
  life_.take_over({.started_at = carried.started_at,
                   .idle_since = carried.idle_since,
                   .start_count = carried.start_count});
  ledger_.continue_from(carried.figures);
  serves_metrics_ = carried.serves_metrics;
  takes_webhooks_ = carried.takes_webhooks;
  if (planner_) planner_->on_start();
  restlessness_.on_start();
  requests_.take_over(std::move(carried.requests));
  look_later();
  return {};
}

io::Task<Result<std::string>> RunningOperator::scrape() {
  // What waits here may be the last that holds this.
  const std::shared_ptr<RunningOperator> self = shared_from_this();
  const Phase phase = life_.phase();
  if (phase != Phase::Running && phase != Phase::Asleep) {
    co_return hangar::fail(ErrorKind::Unavailable,
                           fmt::format("the operator is not running ({})", name_of(phase)));
  }
  if (!serves_metrics_) co_return hangar::fail(ErrorKind::NotFound, "the operator has no metrics");
  if (!metrics_) {
    metrics_ = std::make_unique<GuestMetrics>(budget::SteppedReservation(
        parts_.requests.answers, consumer(), limits::kAnswersCountedStep));
  }
  metrics_->on_scrape(io::Loop::now());
  if (life_.may_have_turn() && !metrics_->is_current()) {
    const io::OneShot<bool> answered = metrics_->wait(parts_.loop);
    const io::Loop::Timer limit =
        parts_.loop.after(limits::kMetricsWait, [answered] { answered.set(false); });
    life_.on_arrival();
    look_later();
    co_await answered.wait();
  }
  if (metrics_ && metrics_->last()) co_return *metrics_->last();
  if (life_.phase() != Phase::Asleep) {
    co_return hangar::fail(ErrorKind::Unavailable, "the operator has not answered in time");
  }
  co_return "# The operator sleeps, and was not scraped before.\n";
}

io::Task<GuestReviews::Answer> RunningOperator::review(kube_runtime::HttpRequest request,
                                                       std::stop_token stop) {
  // What waits here may be the last that holds this.
  const std::shared_ptr<RunningOperator> self = shared_from_this();
  const Phase phase = life_.phase();
  if (phase != Phase::Running && phase != Phase::Asleep) {
    co_return hangar::fail(ErrorKind::Unavailable,
                           fmt::format("the operator is not running ({})", name_of(phase)));
  }
  if (!takes_webhooks_) {
    co_return hangar::fail(ErrorKind::NotFound, "the operator takes no webhooks");
  }
  if (!reviews_) {
    reviews_ = std::make_unique<GuestReviews>(budget::SteppedReservation(
        parts_.requests.answers, consumer(), limits::kAnswersCountedStep));
  }
  const auto added = reviews_->add(parts_.loop, std::move(request));
  if (!added) co_return std::unexpected(added.error());
  const std::shared_ptr<const GuestReviews::Review>& review = *added;
  const std::stop_callback late(stop, [&review] {
    review->end(hangar::fail(ErrorKind::Unavailable, "the operator has not answered in time"));
  });
  look_for_reviews();
  GuestReviews::Answer answer = co_await review->wait();
  if (reviews_) {
    reviews_->give_up(*review);
    look_for_reviews();
  }
  co_return answer;
}

void RunningOperator::look_for_reviews() {
  if (!is_stopped_ && reviews_ && reviews_->may_hand_over()) on_arrival();
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

kube::Identity RunningOperator::identity() const {
  return identity_of(packed_.origin());
}

kube::Identity RunningOperator::identity_of(const PackedOperator::Origin& origin) const {
  if (origin.service_account.empty()) return {};
  return kube::service_account(key_.namespace_, origin.service_account);
}

std::optional<foresight::Forecaster::Expectation> RunningOperator::expected_wake() const {
  return planner_ ? planner_->expectation(moment()) : std::nullopt;
}

void RunningOperator::on_arrival() {
  if (planner_) planner_->on_arrival(moment());
  life_.on_arrival();
  look_later();
}

void RunningOperator::on_bound(const std::string& message) {
  const Instant now = io::Loop::now();
  std::optional<Instant>& told = troubles_to_change().bound_told;
  if (told && now - *told < limits::kOperatorBoundTold) return;
  told = now;
  parts_.loop.post([weak = weak_from_this(), message] {
    const std::shared_ptr<RunningOperator> self = weak.lock();
    if (self && !self->is_stopped_) self->parts_.on_bound(*self, message);
  });
}

// The guest starts anew; its requests are dropped.
void RunningOperator::on_overflow(const Overflow& overflow) {
  if (overflow.shortage && overflow.is_of_requests) {
    return fail({ErrorKind::LimitExceeded,
                 fmt::format("there is no memory for the requests and timers of the guest: {}; "
                             "operators should have fewer and smaller ones at a time",
                             to_text(*overflow.shortage))});
  }
  if (overflow.shortage) {
    return fail({ErrorKind::LimitExceeded,
                 fmt::format("there is no memory for the answers that wait for the guest: {}; "
                             "operators should ask for less at a time (limit, selectors)",
                             to_text(*overflow.shortage))});
  }
  fail({ErrorKind::LimitExceeded,
        fmt::format("more than {} MiB of answers wait for the guest; it should ask for less at a "
                    "time (limit, selectors)",
                    limits::kGuestAnswersBytesMax / limits::kMiB)});
}

// Posted, so that several events in one turn of the loop cause one look.
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
  // A guest that is held takes no answers: one that has arrived is not awaited any more.
  const bool is_answering =
      life_.is_held() ? requests_.is_answer_under_way() : requests_.awaits_answer();
  const bool is_awaiting = is_answering || (reviews_ && reviews_->are_awaited());
  life_.expect_answer(is_awaiting);
  life_.want_last_turn(serves_metrics_ && metrics_ && !metrics_->is_current() &&
                       metrics_->was_scraped_lately(io::Loop::now()));
  const bool is_napping = planner_ && life_.is_idle() && !is_awaiting;
  const Life::Step step =
      life_.next(io::Loop::now(), is_napping ? &planner_->nap(moment()) : nullptr);
  if (step.act != Life::Act::Nothing) {
    parts_.loop.spawn(carry_out(step.act));
    return;
  }
  // Idle, with no answer expected: its start is over, so another operator may have the place.
  if (!life_.is_busy() && !requests_.awaits_answer() && work_) work_->starting.reset();
  if (step.ask_again) {
    const Duration delay = std::max(Duration::zero(), Duration(*step.ask_again - io::Loop::now()));
    work().look_timer = parts_.loop.after(delay, [this] { look(); });
  }
}

io::Task<void> RunningOperator::carry_out(Life::Act act) {
  const io::Loop::Activity activity(
      parts_.loop, fmt::format("operator {}/{}: {}", key_.namespace_, key_.name, name_of(act)),
      budget::Tenant::of_namespace(key_.namespace_));
  const Result<> carried_out = co_await io::contained(act == Life::Act::Start  ? begin_guest()
                                                      : act == Life::Act::Wake ? wake_guest()
                                                      : act == Life::Act::Load ? load_guest()
                                                                               : fall_asleep());
  if (!carried_out) give_up(act, carried_out.error());
  if (is_stopped_) {
    work().stopped->set(true);
    co_return;
  }
  if (!life_.is_resident()) rest();
  look_later();
  parts_.on_change(*this);
}

// The act threw an exception, perhaps before Life was told how it ended.
void RunningOperator::give_up(Life::Act act, const Error& error) {
  if (act == Life::Act::Sleep && life_.is_busy()) {
    life_.on_sleep_ended(Life::SleepEnd::StaysResident, io::Loop::now());
  } else if (act == Life::Act::Load && life_.is_busy()) {
    life_.on_load_ended(Life::LoadEnd::StaysAsleep, io::Loop::now());
  } else if (life_.is_busy()) {
    life_.on_turn_ended(Life::TurnEnd::Waits, io::Loop::now());
  }
  if (!is_stopped_) fail(error);
}

io::Task<Result<>> RunningOperator::wait_to_start() {
  std::unique_ptr<StartPlace> place = HANGAR_CO_TRY(co_await StartPlace::acquire(
      {.loop = parts_.loop, .all = parts_.starts, .large = parts_.large_starts}, consumer(),
      module_->memory_bytes_min(), work().stop.get_token()));
  work().starting = std::move(place);
  co_return Result<>();
}

io::Task<Result<>> RunningOperator::wait_for_memory() {
  waits_for_memory_ = true;
  Result<std::optional<budget::Reservation>> memory = co_await parts_.engine.reserve(
      consumer(), guest_->memory_bytes_needed(), work().stop.get_token());
  waits_for_memory_ = false;
  if (!memory) co_return std::unexpected(std::move(memory).error());
  guest_->provide(*std::move(memory));
  co_return Result<>();
}

// The last turn's cost is the expected cost of this one.
io::Task<Result<budget::FairSlots::Slot>> RunningOperator::wait_for_turn() {
  std::stop_source& wait = work().turn_wait;
  wait = std::stop_source();
  const std::stop_callback on_stop(work().stop.get_token(), [&wait] { wait.request_stop(); });
  Result<budget::FairSlots::Slot> slot =
      co_await parts_.turns.acquire(consumer(), {.cost = expected_cost()}, wait.get_token());
  wait = std::stop_source(std::nostopstate);
  if (!slot && life_.is_evicted()) co_return std::unexpected(evicted());
  co_return slot;
}

std::uint64_t RunningOperator::expected_cost() const {
  return std::max<std::uint64_t>(
      1, static_cast<std::uint64_t>(ledger_.figures().last_cpu_time.count()));
}

void RunningOperator::charge_turn(budget::FairSlots::Slot& slot, const TurnOutcome& outcome) {
  const auto used = static_cast<std::uint64_t>(outcome.cpu_time.count());
  slot.charge(used - std::min(used, expected_cost()));
}

// Without what only its start needs.
kube_runtime::GuestOptions RunningOperator::options_of(const Operator& spec) const {
  const bool is_alone = spec.isolation == Isolation::Operator;
  return {.memory_bytes_max = spec.limits.memory_bytes,
          .cpu_time_max = spec.limits.cpu_time_per_wake,
          .may_sleep = may_sleep(spec.sleep, *module_),
          .alone = is_alone ? spec.key.name : std::string(),
          .output_bytes_max = spec.limits.log_bytes};
}

kube_runtime::Guests::Events RunningOperator::guest_events() {
  return {.on_lost = [this](Error error) { fail(std::move(error)); },
          .on_notice = [this] { evict(); }};
}

io::Task<Result<TurnOutcome>> RunningOperator::first_turn() {
  const std::stop_token stop = work().stop.get_token();
  const Operator spec = packed_.unpack(key_).spec;
  const bool is_alone = spec.isolation == Isolation::Operator;
  if (is_alone && !parts_.guests.has_places_alone()) {
    co_return hangar::fail(
        ErrorKind::InvalidInput,
        "spec.isolation is Operator, and this host runs operators in its own process: start it "
        "without --guest-isolation=none, or leave the field out");
  }
  GuestInputs inputs = HANGAR_CO_TRY(co_await parts_.read_inputs(spec, stop));
  kube_runtime::GuestOptions options = options_of(spec);
  options.args = {spec.key.name};
  options.environment = std::move(inputs.environment);
  options.files = std::move(inputs.files);
  options.in_pod = std::move(inputs.in_pod);
  std::ranges::copy(spec.args, std::back_inserter(options.args));
  // Processes of guests tell modules apart by their owner, which of module_ is a charge, too.
  guest_ = parts_.guests.make(module_->shared(), std::move(options), guest_events());
  HANGAR_CO_TRY(co_await wait_for_memory());
  budget::FairSlots::Slot slot = HANGAR_CO_TRY(co_await wait_for_turn());
  ledger_.on_start();
  TurnOutcome outcome = co_await guest_->start(stop, consumer());
  charge_turn(slot, outcome);
  co_return outcome;
}

io::Task<void> RunningOperator::begin_guest() {
  if (life_.start_count() > 1) ledger_.on_restart();
  drop_guest();
  if (planner_) planner_->on_start();
  restlessness_.on_start();
  const Instant asked = io::Loop::now();
  const Result<> waited = co_await wait_to_start();
  const Instant began = io::Loop::now();
  Result<TurnOutcome> outcome = waited ? co_await first_turn() : std::unexpected(waited.error());
  if (!outcome) outcome = TurnOutcome{.ended = std::unexpected(outcome.error())};
  record_turn(*outcome, Woken(), asked, began);
  on_outcome(*std::move(outcome), io::Loop::now() - began);
}

io::Task<void> RunningOperator::wake_guest() {
  const Instant asked = io::Loop::now();
  const Instant arrived = requests_.first_arrival().value_or(asked);
  const Result<> has_memory =
      guest_->memory_bytes_needed() > 0 ? co_await wait_for_memory() : Result<>();
  Result<budget::FairSlots::Slot> slot =
      has_memory ? co_await wait_for_turn() : std::unexpected(has_memory.error());
  if (!slot && is_stopped_) {
    // Stopped while it waited for its turn: there is nothing to hand over.
    life_.on_turn_ended(Life::TurnEnd::Completed, io::Loop::now());
    co_return;
  }
  if (!slot && (life_.is_evicted() || life_.is_held())) {
    life_.on_turn_put_off(io::Loop::now());
    co_return;
  }
  if (!slot) {
    on_outcome(TurnOutcome{.ended = std::unexpected(std::move(slot).error())}, Duration::zero());
    co_return;
  }
  const Instant began = io::Loop::now();
  // From here on, an arrival belongs to the next turn.
  life_.on_handed_over();
  Woken woken(ledger_.is_tracing() ? Woken::Traces::On : Woken::Traces::Off);
  const bool is_settled = requests_.is_settled();
  GuestRequests::Arrivals arrivals = requests_.take_arrivals(woken);
  std::vector<Wakeup>& wakeups = arrivals.wakeups;
  if (reviews_) hand_over_reviews(wakeups, woken);
  restlessness_.on_turn({.has_timer = arrivals.has_timer,
                         .has_event = arrivals.has_stream || (reviews_ && reviews_->are_awaited()),
                         .is_settled = is_settled,
                         .at = arrived});
  const std::size_t count = wakeups.size();
  if (metrics_) ask_for_metrics(wakeups, woken);
  TurnOutcome outcome =
      co_await guest_->wake(std::move(wakeups), work().stop.get_token(), consumer());
  requests_.on_turn_ended();
  charge_turn(*slot, outcome);
  if (metrics_) metrics_->on_answers(outcome.answers);
  if (reviews_) reviews_->on_answers(outcome.answers);
  if (planner_ && outcome.was_asleep) {
    planner_->on_woken({.took = outcome.resume_time, .cpu_time = outcome.resume_cpu_time});
  }

  const Instant ended = io::Loop::now();
  ledger_.on_wake({.arrivals = count, .arrived = arrived, .began = began, .ended = ended}, outcome);
  record_turn(outcome, woken, arrived, began);
  on_outcome(std::move(outcome), ended - began);
}

void RunningOperator::hand_over_reviews(std::vector<Wakeup>& wakeups, Woken& woken) {
  reviews_->hand_over([this](std::uint64_t id) { guest_->forget(id); },
                      [this, &woken](const kube_runtime::HttpRequest& request) {
                        ledger_.on_review(request.body);
                        auto inbound = guest_->hand_in(Listener::Webhooks, request);
                        if (inbound) woken.add_request(Listener::Webhooks, request.body.size());
                        return inbound;
                      },
                      wakeups);
}

// A turn without arrivals is one for the metrics alone.
void RunningOperator::ask_for_metrics(std::vector<Wakeup>& wakeups, Woken& woken) {
  if (!serves_metrics_ || (!wakeups.empty() && !metrics_->is_waited_for())) {
    metrics_->on_turn();
    return;
  }
  if (wakeups.empty()) life_.stay_idle();
  // Otherwise a guest that never answers would have no room for reviews in the end.
  if (const std::optional<std::uint64_t> earlier = metrics_->unanswered()) guest_->forget(*earlier);
  Result<kube_runtime::Guest::Inbound> inbound =
      guest_->hand_in(Listener::Metrics, {.method = "GET", .uri = "/metrics"});
  metrics_->on_asked(inbound ? std::optional(inbound->id) : std::nullopt);
  if (!inbound) return;
  woken.add_request(Listener::Metrics, 0);
  wakeups.push_back(std::move(inbound->wakeup));
}

io::Task<void> RunningOperator::fall_asleep() {
  const Instant began = io::Loop::now();
  const std::uint64_t held_bytes = resident_bytes();
  const bool must_leave = life_.is_evicted();
  const Result<Duration> slept = co_await guest_->sleep(consumer().tenant);
  ledger_.on_sleep(began, slept.has_value(), disk_bytes());
  if (slept && planner_) planner_->on_suspended(io::Loop::now(), *slept, held_bytes);
  if (slept) {
    if (troubles_) troubles_->sleep_problem.clear();
  } else {
    troubles_to_change().sleep_problem = slept.error().message();
    parts_.log.warning(
        "an operator stays resident",
        {{"namespace", key_.namespace_}, {"name", key_.name}, {"error", slept.error().message()}});
  }
  life_.on_sleep_ended(slept ? Life::SleepEnd::Asleep : Life::SleepEnd::StaysResident,
                       io::Loop::now());
  if (!slept && must_leave && life_.is_resident()) fail(evicted());
  if (life_.phase() == Phase::BackOff) drop_guest();
}

// Nobody waits for this: it takes memory only where there is some to spare.
io::Task<void> RunningOperator::load_guest() {
  if (!parts_.may_load_ahead(consumer(), guest_->memory_bytes_needed())) {
    planner_->on_load_refused();
    life_.on_load_ended(Life::LoadEnd::StaysAsleep, io::Loop::now());
    co_return;
  }
  const Result<> has_memory =
      guest_->memory_bytes_needed() > 0 ? co_await wait_for_memory() : Result<>();
  Result<budget::FairSlots::Slot> slot =
      has_memory ? co_await wait_for_turn() : std::unexpected(has_memory.error());
  if (!slot) {
    // Gives back the memory that it was provided with.
    static_cast<void>(co_await guest_->sleep(consumer().tenant));
    life_.on_load_ended(Life::LoadEnd::StaysAsleep, io::Loop::now());
    co_return;
  }
  const Result<kube_runtime::Guest::Loaded> loaded =
      co_await guest_->load(work().stop.get_token(), consumer());
  if (loaded) {
    const auto used = static_cast<std::uint64_t>(loaded->cpu_time.count());
    slot->charge(used - std::min(used, expected_cost()));
    if (loaded->resume_time > Duration::zero()) {
      planner_->on_loaded({.took = loaded->resume_time, .cpu_time = loaded->cpu_time});
    }
  }
  life_.on_load_ended(loaded ? Life::LoadEnd::Loaded : Life::LoadEnd::StaysAsleep, io::Loop::now());
  if (!loaded && !is_stopped_) fail(loaded.error());
  if (life_.phase() == Phase::BackOff) drop_guest();
}

void RunningOperator::rest() {
  if (work_ && !requests_.awaits_answer()) work_->starting.reset();
  ledger_.rest();
  requests_.rest();
  if (output_ && output_->is_as_new()) output_.reset();
  if (metrics_ && !metrics_->is_waited_for() && !metrics_->was_scraped_lately(io::Loop::now())) {
    metrics_.reset();
  }
  if (reviews_ && reviews_->is_empty()) reviews_.reset();
  if (work_ && work_->is_nothing()) work_.reset();
}

void RunningOperator::record_turn(const TurnOutcome& outcome, const Woken& woken, Instant arrived,
                                  Instant began) const {
  if (!ledger_.is_recording()) return;
  const PackedOperator::Origin origin = packed_.origin();
  const std::string user = identity_of(origin).user;
  const std::string module = module_->digest().to_hex();
  ledger_.record_turn({.uid = origin.uid,
                       .user = user,
                       .module = module,
                       .memory_bytes = resident_bytes(),
                       .arrived = arrived,
                       .began = began},
                      outcome, woken);
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
  ledger_.on_turn(took, outcome.cpu_time);
  if (is_stopped_) {
    life_.on_turn_ended(Life::TurnEnd::Completed, io::Loop::now());
    return;
  }
  if (!outcome.ended || outcome.exit_code.value_or(0) != 0) {
    life_.on_turn_ended(Life::TurnEnd::Waits, io::Loop::now());
    if (!outcome.ended && outcome.ended.error().kind() == ErrorKind::GuestFault) ledger_.on_trap();
    fail(outcome.ended ? Error(ErrorKind::GuestFault,
                               fmt::format("the guest exited with code {}", *outcome.exit_code))
                       : std::move(outcome.ended).error());
    return;
  }
  ledger_.on_success();
  serves_metrics_ = guest_->listens(Listener::Metrics);
  takes_webhooks_ = guest_->listens(Listener::Webhooks);
  if (std::ranges::any_of(outcome.calls, may_change_something)) restlessness_.on_work();
  requests_.take_up(outcome, ledger_.turn_number());
  const bool is_done = outcome.exit_code || (requests_.is_empty() && !takes_webhooks_);
  life_.on_turn_ended(is_done ? Life::TurnEnd::Completed : Life::TurnEnd::Waits, io::Loop::now());
  if (life_.phase() == Phase::Running) {
    requests_.begin_due();
    look_for_reviews();
  } else {
    drop_guest();
  }
}

void RunningOperator::fail(Error error) {
  ledger_.on_failure();
  troubles_to_change().last_error = error.message();
  life_.fail(io::Loop::now());
  if (!life_.is_busy()) drop_guest();
  parts_.loop.post([weak = weak_from_this(), error = std::move(error)] {
    const std::shared_ptr<RunningOperator> self = weak.lock();
    if (self && !self->is_stopped_) self->parts_.on_failure(*self, error);
  });
  look_later();
}

void RunningOperator::drop_guest() {
  if (work_) work_->starting.reset();
  requests_.clear();
  requests_.reopen();
  requests_.on_turn_ended();
  if (metrics_) metrics_->clear();
  if (reviews_) reviews_->clear(Error(ErrorKind::Unavailable, "the operator has ended"));
  serves_metrics_ = false;
  takes_webhooks_ = false;
  guest_.reset();
}

}  // namespace hangar::operators
