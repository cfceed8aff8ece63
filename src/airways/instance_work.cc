#include "airways/instance_work.h"

#include "abi/flight/evaluation.h"
#include "airways/airway.h"
#include "airways/conditions.h"
#include "airways/flight_modules.h"
#include "airways/flight_run.h"
#include "airways/identity.h"
#include "airways/instance.h"
#include "airways/instance_report.h"
#include "airways/life.h"
#include "airways/limits.h"
#include "airways/overrides.h"
#include "airways/ownership.h"
#include "airways/patches.h"
#include "airways/plan.h"
#include "airways/platform.h"
#include "airways/readiness.h"
#include "airways/reasons.h"
#include "airways/release_work.h"
#include "airways/resource_ref.h"
#include "airways/revision.h"
#include "airways/tracker.h"
#include "base/assert.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "budget/reservation_queue.h"
#include "io/loop.h"
#include "io/part.h"
#include "io/task.h"
#include "io/workers.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/core_resources.h"
#include "kube/find.h"
#include "kube/object.h"
#include "modules/requester.h"
#include "modules/supply.h"
#include "output/log_files.h"
#include "output/printout.h"
#include "reconcile/acting_rights.h"
#include "reconcile/controller.h"
#include "reconcile/event_log.h"
#include "reconcile/event_recorder.h"
#include "reconcile/guest_waits.h"
#include "wasm/engine.h"
#include "wasm/limits.h"

#include <algorithm>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace hangar::airways {

namespace {

using reconcile::Outcome;

// Bytes per second that the flight of one instance may print on stderr, on average. Four times
// that, the most that one run may print, may come at once.
constexpr std::uint64_t kOutputRateMax = limits::kFlightErrorBytesMax / 4;

}  // namespace

InstanceWork::InstanceWork(Subject subject, const kube::Object& object, std::stop_token stop)
    : subject_(std::move(subject)),
      platform_(subject_.platform),
      memory_(subject_.memory),
      key_(object.key()),
      is_being_deleted_(object.is_being_deleted()),
      stop_(std::move(stop)),
      value_(object.to_value()),
      release_(release_of(value_)),
      binding_(subject_.binding),
      recording_(platform_.recorder, subject_.shell.kind(), value_) {
  recording_.queued_at(subject_.shell.queued_at(key_));
}

InstanceWork::~InstanceWork() = default;

bool InstanceWork::is_overtaken() const {
  return airways::is_overtaken(value_, subject_.shell.newest(key_).get());
}

// Whether a child or a looked-up object differs from what our last apply left.
bool InstanceWork::has_news(const ResourceRef& ref) const {
  const auto applied = memory_.applied.find(ref);
  const kube::ObjectPtr child = platform_.view.seen(ref);
  return is_news(child.get(), applied == memory_.applied.end() ? nullptr : &applied->second);
}

io::Task<Result<Outcome>> InstanceWork::run() {
  Result<Outcome> outcome = co_await carry_out();
  if (!outcome && outcome.error().reason() == reconcile::kNamespaceNotAllowed) {
    // The status says so; the right may be given at any time.
    co_return Outcome{.requeue_after = reconcile::kNotAllowedRecheck};
  }
  co_return outcome;
}

io::Task<Result<>> InstanceWork::report(Verdict verdict) {
  return write_status(std::move(verdict));
}

io::Task<Result<Outcome>> InstanceWork::carry_out() {
  if (!memory_.history) {
    const kube::Client& client = platform_.shared.client;
    // A deletion reads the history ahead of all guests, which may occupy every worker.
    io::Workers* const readers = client.readers();
    memory_.history.emplace(readers != nullptr ? *readers : platform_.shared.workers, client,
                            release_, ReleaseHistory::Keep::Names);
  }
  memory_.history->set_order(is_being_deleted_ ? io::Workers::Order::First
                                               : io::Workers::Order::InTurn);

  const Instant now = io::Loop::now();
  const Life::Act act = memory_.life.begin(
      {.is_being_deleted = is_being_deleted_,
       .has_flight = subject_.binding != nullptr,
       .tracked_interval_min =
           subject_.binding ? subject_.binding->terms.tracked_interval_min : Duration(0)},
      [this](const ResourceRef& ref) { return has_news(ref); }, now);
  // Changes after which no flight runs are no reasons for the next run.
  if (!memory_.life.has_changes() && (act == Life::Act::Nothing || act == Life::Act::Settle)) {
    memory_.reasons.clear();
  }
  switch (act) {
    case Life::Act::TakeDown:
      co_return co_await tear_down();
    case Life::Act::Evaluate:
      co_return co_await evaluate();
    case Life::Act::Nothing:
      co_return Outcome{.requeue_after = memory_.life.next_look({}, now)};
    case Life::Act::Settle:
      break;
  }
  // Only the readiness of the release can have changed.
  HANGAR_CO_TRY(co_await settle());
  HANGAR_CO_TRY(co_await write_status(verdict_));
  co_return Outcome{.requeue_after = memory_.life.next_look(look_again_after_, now)};
}

// Sets the finalizer and the owner reference, in one write, before anything is created.
io::Task<Result<>> InstanceWork::claim() {
  std::optional<json::Value> patch = claim_patch(value_, subject_.binding->airway.get());
  if (!patch) co_return Result<>();
  Result<json::Value> answer =
      co_await subject_.shell.patch(key_, kube::PatchType::Merge, *std::move(patch), stop_);
  if (!answer) co_return std::unexpected(std::move(answer).error().in("claim the instance"));
  value_ = *std::move(answer);
  co_return Result<>();
}

io::Task<Result<Outcome>> InstanceWork::evaluate() {
  HANGAR_ASSERT(binding_ != nullptr, "only an instance with a flight is evaluated");
  // Before the finalizer: without a history there is nothing that it would have to remove.
  io::Part part(platform_.shared.loop, "history and rights");
  HANGAR_CO_TRY(co_await prepare());
  part.next("finalizer");
  HANGAR_CO_TRY(co_await claim());

  part.next("overrides");
  Result<> done = co_await follow_overrides();
  part.next("release");

  const Terms& terms = binding_->terms;
  const ResourceRef self = release_.instance;
  platform_.tracker.begin(self, terms.mode);
  if (done) done = co_await release();
  output_memory_.reset();
  part.next("readiness");
  if (done) done = co_await settle();
  part.next("status");
  platform_.tracker.end(self, done ? Tracker::End::Succeeded : Tracker::End::Failed);
  // After a failure, watches of earlier runs stay, like the references in the tracker. Those of a
  // tenant's flight, which may fail with other lookups each time, stay no longer than these.
  if (done || terms.lookup_watch == LookupWatch::Changes) {
    const std::vector<ResourceRef> tracked = platform_.tracker.tracked(self);
    platform_.view.keep_external(self, tracked);
  }

  std::optional<Error> error;
  if (!done) {
    memory_.life.on_failed();
    error = advise(done.error());
    if (error->kind() == ErrorKind::Cancelled) co_return std::unexpected(*std::move(error));
    if (std::optional<Verdict> verdict = verdict_on_failure(*error)) verdict_ = *std::move(verdict);
  }
  Result<> written = co_await write_status(verdict_);
  if (error && !is_untold(*error, written)) {
    // The cluster may accept later what it refuses now, and no event would say so.
    if (is_refused_ && error->kind() == ErrorKind::InvalidInput) {
      error = Error(ErrorKind::GuestFault, error->message());
    }
    co_return std::unexpected(*std::move(error));
  }
  if (!written) {
    memory_.life.on_changed();
    co_return std::unexpected(std::move(written).error());
  }

  const Instant now = io::Loop::now();
  memory_.life.on_evaluated(terms.fix_drift_interval, now);
  co_return Outcome{.requeue_after = memory_.life.next_look(look_again_after_, now)};
}

io::Task<Result<>> InstanceWork::choose_actor() {
  actor_ = HANGAR_CO_TRY(subject_.actor);
  co_return co_await actor_->check(platform_.shared.acting, stop_);
}

Error InstanceWork::advise(const Error& error) const {
  return actor_ ? actor_->advise(error) : error;
}

io::Task<Result<>> InstanceWork::load_history() {
  return memory_.history->load(stop_);
}

io::Task<Result<>> InstanceWork::prepare() {
  Result<> ready = co_await choose_actor();
  if (ready) ready = co_await load_history();
  if (!ready && is_for_people(ready.error())) {
    verdict_ = failed(ready.error().message());
    Result<> written = co_await write_status(verdict_);
    if (is_untold(ready.error(), written)) ready = std::move(written);
  }
  if (!ready) memory_.life.on_changed();
  co_return ready;
}

// Requires the actor, unless only readiness() is called.
ReleaseWork& InstanceWork::carrying() {
  if (!carrying_) {
    std::optional<kube::Client> client;
    if (actor_) client = actor_->client(platform_.shared.client);
    ReleaseParts parts = platform_.release_parts();
    parts.consumer = consumer();
    parts.recording = &recording_;
    carrying_.emplace(parts, std::move(client), release_, memory_,
                      CarryOptions{.prune = subject_.prune}, stop_);
  }
  return *carrying_;
}

// The module of an override is requested at each evaluation. This reconcile waits for its source
// until it has given the module once: that delays only this instance, and the user who has set the
// override may update the Airway.
io::Task<Result<>> InstanceWork::follow_overrides() {
  memory_.other_module.reset();
  if (!subject_.binding->airway) co_return Result<>();
  const Airway& own = *subject_.binding->airway;
  const Overrides overrides = overrides_of(value_);
  if (!overrides.any() || !platform_.means.has_webhooks) {
    warn_of(unsupported_of_instance(value_));
    co_return co_await keep_approval({});
  }
  std::optional<std::string> approval =
      HANGAR_CO_TRY(co_await find_approval(platform_, own.name, value_, overrides, stop_));
  if (!approval) {
    warn_of({not_approved(own)});
    co_return co_await keep_approval({});
  }
  HANGAR_CO_TRY(co_await keep_approval(*std::move(approval)));
  warn_of({});
  release_.override_mode = overrides.mode;
  auto binding = std::make_shared<Binding>(*subject_.binding);
  binding->terms = overridden(own.terms, overrides);
  if (!overrides.flight.empty()) {
    modules::Source source = binding->terms.flight;
    HANGAR_CO_TRY(platform_.modules.check_allowed(source.reference));
    // A deletion does not wait for the source.
    const reconcile::CustomResource::WhileItLives living(subject_.shell, key_, stop_);
    binding->module = HANGAR_CO_TRY(co_await platform_.modules.prepare_in_time(
        {.requester = modules::Requester::cluster_wide(), .module = std::move(source)},
        living.token(), when_it_is_another()));
    binding->is_first_use = false;
  }
  binding_ = std::move(binding);
  co_return Result<>();
}

// For a source that answers after this reconcile: the flight runs again, with the other module.
std::function<void()> InstanceWork::when_it_is_another() {
  memory_.other_module = std::make_shared<const bool>(true);
  return [awaits = std::weak_ptr<const bool>(memory_.other_module), &memory = memory_,
          &shell = subject_.shell, &recorder = platform_.recorder, key = key_] {
    if (awaits.expired()) return;
    if (recorder.is_on()) memory.reasons.add("another module");
    memory.life.on_changed();
    shell.enqueue(key);
  };
}

io::Task<Result<>> InstanceWork::keep_approval(std::string name) {
  std::string before = std::exchange(memory_.approval, std::move(name));
  if (before.empty() || before == memory_.approval) co_return Result<>();
  co_return co_await remove_approval(platform_, std::move(before), stop_);
}

// Runs the flight and carries out what it printed.
io::Task<Result<>> InstanceWork::release() {
  const Terms& terms = binding_->terms;
  io::Part part(platform_.shared.loop, "run of the flight");
  Stages stages = HANGAR_CO_TRY(co_await run_flight());

  const Source source{.url = terms.flight.reference, .checksum = binding_->module.sha1};
  ReleaseWork& work = carrying();
  part.next("its resources");
  HANGAR_CO_TRY(co_await work.prepare(stages));
  if (binding_->is_first_use) {
    if (const Result<> pinned = check_pinned(memory_.history->history(), source); !pinned) {
      co_return fail(pinned.error().kind(),
                     pinned.error().message() + "; set its checksum in the Airway to take it over");
    }
  }
  std::vector<ResourceRef> refs;
  for (const Stage& stage : stages) {
    for (const json::Value& resource : stage)
      refs.push_back(airways::ref_of(resource));
  }
  platform_.tracker.releasing(release_.instance, refs);

  is_refused_ = true;  // If the rest fails.
  // Rules in Lua wait for memory of the same namespace, and a task that waits must hold none.
  if (platform_.custom_readiness.has_scripts()) output_memory_.reset();
  part.next("apply");
  Progress progress = HANGAR_CO_TRY(co_await work.apply(stages, source));
  Life::ReleaseWait wait{.step = work.released_count(), .patience = limits::kStageReadyMax};
  if (progress.done) {
    part.next("revision");
    // An empty output is a revision too.
    HANGAR_CO_TRY(co_await memory_.history->record(stages, source, io::Loop::wall_now(), stop_));
    part.next("prune");
    progress = HANGAR_CO_TRY(co_await work.prune(stages));
    wait = {.step = wait.step + 1, .patience = limits::kPruneMax};
  }
  if (progress.done) {
    memory_.life.on_released();  // settle() computes its readiness.
    co_return co_await memory_.history->activate(io::Loop::wall_now(), terms.history_max, stop_);
  }

  const Instant now = io::Loop::now();
  if (!memory_.life.on_release_waits(wait, now)) {
    co_return fail(ErrorKind::Unavailable,
                   "release did not become ready within wait period: " + progress.waiting_for);
  }
  look_again_after_ = std::min<Duration>(memory_.life.patience_left(now), kReadinessRecheck);
  verdict_ = waiting_for_ready();
  co_return Result<>();
}

io::Task<Result<Stages>> InstanceWork::run_flight() {
  HANGAR_ASSERT(actor_.has_value(), "the identity of the flight is known");
  evaluated_ = value_;
  const Reasons reasons = take_reasons();
  const Instant began = io::Loop::now();
  // A deletion does not wait until the flight's turn is over.
  const reconcile::CustomResource::WhileItLives living(subject_.shell, key_, stop_);
  Result<abi::flight::Output> output = co_await reconcile::tell_waits(
      platform_.shared.waits, consumer(),
      [this](reconcile::GuestWait wait) { return tell_wait(std::move(wait)); },
      airways::run_flight({.platform = platform_,
                           .binding = binding_,
                           .release = release_,
                           .lookups_for = release_.instance,
                           .tracker = platform_.tracker,
                           .actor = *actor_,
                           .consumer = consumer(),
                           .recording = &recording_},
                          evaluated_, living.token()));
  recording_.ran(began, user(), binding_->module.sha256, output, reasons);
  if (!output) co_return std::unexpected(std::move(output).error());
  keep_output(output->stderr_bytes);
  budget::ReservationQueue* const memory = platform_.runtime.engine().memory();
  if (output->exit_code != 0) {
    // The output is not a release, but it may contain a status for the instance.
    if (Result<PrintedOutput> parsed =
            co_await parse_printed(platform_.shared.workers, memory, consumer(),
                                   std::move(output->stdout_bytes), living.token())) {
      identity_ = take_identity(parsed->output.stages, release_.instance);
    }
    co_return fail(ErrorKind::GuestFault, evaluation_failure(*output));
  }
  PrintedOutput parsed =
      HANGAR_CO_TRY(co_await parse_printed(platform_.shared.workers, memory, consumer(),
                                           std::move(output->stdout_bytes), living.token()));
  output_memory_ = std::move(parsed.memory);
  identity_ = take_identity(parsed.output.stages, release_.instance);
  co_return std::move(parsed.output.stages);
}

Reasons InstanceWork::take_reasons() {
  Reasons reasons = std::exchange(memory_.reasons, {});
  if (!reasons.is_empty()) return reasons;
  switch (memory_.life.due()) {
    case Life::Due::Retry:
      reasons.add("retry");
      break;
    case Life::Due::Drift:
      reasons.add("drift interval");
      break;
    case Life::Due::Release:
      reasons.add("release waits");
      break;
    case Life::Due::Nothing:
      break;
  }
  return reasons;
}

budget::Consumer InstanceWork::consumer() const {
  return {.tenant = budget::Tenant::of_namespace(release_.instance.namespace_),
          .name = "instance/" + release_.history_name};
}

std::string InstanceWork::user() const {
  const Account* const account = actor_ ? actor_->account() : nullptr;
  return account == nullptr ? std::string() : account->identity().user;
}

// The stderr of a flight is for `hangar logs`, whether or not the run succeeds.
void InstanceWork::keep_output(std::string_view printed) {
  if (memory_.printout && memory_.printout->is_as_new()) memory_.printout.reset();
  if (printed.empty()) return;
  if (!memory_.printout) {
    const output::LogFiles::Owner owner{
        .key = key_,
        .uid = std::string(json::string_at(value_, {"metadata", "uid"})),
        .resource = subject_.shell.kind().qualified_plural()};
    platform_.output.begin(owner);
    memory_.printout = std::make_unique<output::Printout>(
        output::Printout::Sinks{
            .loop = platform_.shared.loop, .files = platform_.output, .log = platform_.shared.log},
        owner, kOutputRateMax, "the limit of a flight's output per second");
  }
  memory_.printout->keep(output::lines_of("stderr", printed), 0);
}

// Decides the Ready condition, when everything is applied.
io::Task<Result<>> InstanceWork::settle() {
  if (memory_.life.waits_for_release() && verdict_) co_return Result<>();
  const ReleaseReadiness readiness = HANGAR_CO_TRY(co_await carrying().readiness());
  memory_.has_looked = true;
  memory_.life.on_settled(readiness.is_ready());
  Settled settled = settled_as(readiness);
  verdict_ = std::move(settled.verdict);
  if (settled.look_again) look_again_after_ = settled.look_again;
  co_return Result<>();
}

io::Task<Result<Outcome>> InstanceWork::tear_down() {
  const io::Part part(platform_.shared.loop, "removal");
  if (memory_.last_reason != kReasonTerminating) {
    // Only for users: the removal goes on if this fails.
    std::ignore = co_await write_status(being_removed());
  }
  Result<Outcome> outcome = co_await remove_release();
  if (!outcome && outcome.error().reason() == reconcile::kNamespaceNotAllowed &&
      co_await goes_with_its_namespace()) {
    memory_.life.on_ended();
    co_return Outcome{};
  }
  if (!outcome && is_stuck(outcome.error())) {
    co_await say_stuck(advise(outcome.error()));
  } else if (outcome && outcome->requeue_after && !memory_.stuck.empty()) {
    memory_.stuck.clear();
    std::ignore = co_await write_status(being_removed());
  }
  co_return outcome;
}

// The right to act in a namespace is deleted with it, and cannot be given again meanwhile.
// Resources in the namespace are deleted with it; cluster-scoped ones stay.
io::Task<bool> InstanceWork::goes_with_its_namespace() {
  if (key_.namespace_.empty()) co_return false;
  const Result<kube::ObjectPtr> found = co_await kube::find(
      platform_.shared.client, kube::namespace_resource(), {.name = key_.namespace_}, stop_);
  co_return found && *found && (*found)->is_being_deleted();
}

io::Task<void> InstanceWork::say_stuck(Error error) {
  Verdict verdict = stuck_in_removal(error);
  if (std::exchange(memory_.stuck, verdict.message) != verdict.message) {
    platform_.shared.events.record(value_, {.type = reconcile::EventType::Warning,
                                            .reason = "RemovalFailed",
                                            .message = verdict.message});
  }
  std::ignore = co_await write_status(std::move(verdict));  // Only for users.
}

io::Task<Result<Outcome>> InstanceWork::remove_release() {
  HANGAR_CO_TRY(co_await load_history());
  // If nothing was made, no actor is needed.
  if (!memory_.history->inventory().empty()) HANGAR_CO_TRY(co_await choose_actor());
  recording_.taken_down(user(), std::exchange(memory_.reasons, {}));
  const Progress progress = HANGAR_CO_TRY(co_await carrying().prune({}));
  if (!progress.done) co_return Outcome{.requeue_after = kReadinessRecheck};
  HANGAR_CO_TRY(co_await memory_.history->erase(stop_));

  memory_.life.on_ended();
  co_return Outcome{};
}

io::Task<Result<>> InstanceWork::write_status(std::optional<Verdict> verdict) {
  if (verdict) announce(*verdict);
  const json::Value& evaluated = evaluated_.is_null() ? value_ : evaluated_;
  StatusUpdate update = next_status({.live = value_,
                                     .evaluated = evaluated,
                                     .identity = identity_ ? &*identity_ : nullptr,
                                     .verdict = verdict,
                                     .flight_owned_ready = memory_.life.is_ready_flights()},
                                    io::Loop::wall_now());
  memory_.life.on_ready_owned(update.flight_owns_ready);
  if (!update.outdated) {
    if (subject_.add_to_status) subject_.add_to_status(update.status);
    // No flight runs now. A host that was killed may have left the condition.
    reconcile::put_no_wait(update.status, json::int_at(value_, {"metadata", "generation"}),
                           io::Loop::wall_now());
    update.changed = !json::equal(update.status, reconcile::status_of(value_));
  }
  if (!update.changed || update.outdated || is_overtaken()) co_return Result<>();

  Result<json::Value> answer = co_await subject_.shell.write_status(
      value_, std::move(update.status), reconcile::StatusOf::Spec, stop_);
  if (answer) {
    take_answer(*std::move(answer));
    co_return Result<>();
  }
  // The schema does not allow the flight's status.
  if (answer.error().kind() == ErrorKind::InvalidInput && identity_) {
    identity_.reset();
    const std::string why = "the flight's status is not accepted: " + answer.error().message();
    HANGAR_CO_TRY(co_await write_status(failed(why)));
  }
  co_return std::unexpected(std::move(answer).error());
}

void InstanceWork::take_answer(json::Value answer) {
  if (without_status(answer) != without_status(value_)) {
    // Another writer has changed the instance meanwhile: evaluate it, even if the event of that
    // change looks like a change of the status only.
    memory_.life.on_changed();
    subject_.shell.enqueue(key_);
  }
  value_ = std::move(answer);
}

// Only for users: the flight goes on whether or not this is written. A schema without conditions
// drops it.
io::Task<void> InstanceWork::tell_wait(reconcile::GuestWait wait) {
  std::optional<json::Value> status = reconcile::status_with_wait(
      value_, wait, json::int_at(value_, {"metadata", "generation"}), io::Loop::wall_now());
  if (!status || is_overtaken()) co_return;
  Result<json::Value> answer = co_await subject_.shell.write_status(
      value_, *std::move(status), reconcile::StatusOf::Spec, stop_);
  if (answer) take_answer(*std::move(answer));
}

// Records an Event when the reason of the Ready condition changes, for `kubectl describe`.
void InstanceWork::announce(const Verdict& verdict) {
  const std::string before = std::exchange(memory_.last_reason, verdict.reason);
  if (std::optional<reconcile::EventText> text = event_of(verdict, before, subject_.said_by)) {
    platform_.shared.events.record(value_, *std::move(text));
  }
}

// Records an Event for each override that is ignored, once for each set of them.
void InstanceWork::warn_of(std::vector<std::string> sentences) {
  if (sentences == memory_.unsupported) return;
  for (const std::string& sentence : sentences) {
    platform_.shared.events.record(
        value_,
        {.type = reconcile::EventType::Warning, .reason = "OverrideIgnored", .message = sentence});
  }
  memory_.unsupported = std::move(sentences);
}

}  // namespace hangar::airways
