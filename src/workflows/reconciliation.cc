#include "workflows/reconciliation.h"

#include "base/assert.h"
#include "base/seconds.h"
#include "base/time.h"
#include "io/loop.h"
#include "io/part.h"
#include "reconcile/predicates.h"
#include "workflows/actions.h"
#include "workflows/announcement.h"
#include "workflows/crash_points.h"
#include "workflows/ledger.h"
#include "workflows/machine_problem.h"
#include "workflows/pause.h"
#include "workflows/reading.h"
#include "workflows/sighting.h"
#include "workflows/signals.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::workflows {

namespace {

// The most signals that one reconcile accepts: the next one takes the others, once these are
// removed from the object.
constexpr std::size_t kSignalsPerReconcile = 64;

}  // namespace

Reconciliation::Reconciliation(Parts parts, json::Value manifest, std::stop_token stop)
    : Reconciliation(std::move(parts), read_workflow(manifest), std::move(manifest),
                     std::move(stop)) {}

Reconciliation::Reconciliation(Parts parts, Reading reading, json::Value&& manifest,
                               std::stop_token stop)
    : parts_(std::move(parts)),
      stop_(std::move(stop)),
      manifest_(std::move(manifest)),
      key_(kube::key_of(manifest_)),
      living_(parts_.shell, key_, stop_),
      workflow_(std::move(reading.workflow)),
      decision_(std::move(reading.ledger), rules_of(workflow_)),
      recording_(parts_.recorder, manifest_,
                 kube::service_account(key_.namespace_, workflow_.service_account).user),
      signals_version_(reconcile::version_of(manifest_)),
      problem_(std::move(reading.problem)) {
  recording_.queued_at(parts_.shell.queued_at(key_));
}

io::Task<Result<reconcile::Outcome>> Reconciliation::run() {
  if (problem_) {
    HANGAR_CO_TRY(co_await say_only());
    co_return fail(ErrorKind::InvalidInput, problem_->message);
  }
  // Also for actions that are left when the machine has finished: the spec may name another
  // ServiceAccount by now.
  if (!decision_.ledger().is_at_rest()) {
    if (const Result<> allowed = check_policies(); !allowed) {
      problem_ = Problem{.reason = std::string(tenants::kRefusedByPolicy),
                         .message = allowed.error().message()};
      HANGAR_CO_TRY(co_await say_only());
      co_return reconcile::Outcome{};  // A change of the policies starts another reconcile.
    }
    const Result<> may =
        co_await parts_.platform.acting.check(key_.namespace_, workflow_.service_account, stop_);
    if (!may && may.error().reason() != reconcile::kNamespaceNotAllowed) {
      co_return std::unexpected(may.error());
    }
    if (!may) {
      problem_ = Problem{.reason = std::string(reconcile::kNamespaceNotAllowed),
                         .message = may.error().message()};
      HANGAR_CO_TRY(co_await say_only());
      co_return reconcile::Outcome{.requeue_after = reconcile::kNotAllowedRecheck};
    }
  }
  co_return co_await go_on();
}

Result<> Reconciliation::check_policies() const {
  HANGAR_TRY(parts_.tenant->check_service_account(workflow_.service_account));
  HANGAR_TRY(parts_.tenant->check_module(workflow_.machine.module));
  if (workflow_.machine.plugin) {
    HANGAR_TRY(parts_.tenant->check_module(*workflow_.machine.plugin));
  }
  return {};
}

Result<> Reconciliation::check_pinned_module() const {
  const Ledger& ledger = decision_.ledger();
  if (ledger.is_at_rest() || ledger.sha256.empty()) return {};
  return parts_.tenant->check_loaded_module(ledger.resolved, workflow_.machine.module);
}

io::Task<Result<reconcile::Outcome>> Reconciliation::go_on() {
  io::Part part(parts_.platform.loop, "module");
  if (!check_pinned_module()) {
    // The pinned machine is asked nothing, and its actions wait: only a migration leads on.
    HANGAR_CO_TRY(co_await migrate());
    if (const Result<> allowed = check_pinned_module(); !allowed) {
      if (!problem_) {
        problem_ = refused_module_problem(workflow_, decision_.ledger(), allowed.error());
      }
      HANGAR_CO_TRY(co_await write());
      co_return outcome_of({.look_again = look_again_, .retry = retry_}, io::Loop::wall_now());
    }
  }
  if (decision_.ledger().is_foreign) HANGAR_CO_TRY(co_await check_foreign_state());
  take_signals();
  skip_action();
  HANGAR_CO_TRY(co_await migrate());
  HANGAR_CO_TRY(co_await take_changes());
  bool is_told = false;  // The conditions are written, and nothing has happened since.
  while (true) {
    const WallTime now = io::Loop::wall_now();
    const Decision::Next next = decision_.next(now);
    const auto* const wait = std::get_if<Decision::Wait>(&next);
    if (wait != nullptr && (is_told || is_quiet_)) {
      co_return outcome_of({.until = wait->until, .look_again = look_again_, .retry = retry_}, now);
    }
    is_told = wait != nullptr;
    if (std::holds_alternative<Decision::Start>(next)) {
      part.next("start of the machine");
      HANGAR_CO_TRY(co_await begin());
      take_signals();  // Earlier signals: nothing else makes the host look again.
    } else if (std::holds_alternative<Decision::Ask>(next)) {
      part.next("step of the machine");
      HANGAR_CO_TRY(co_await decide());
    } else if (std::holds_alternative<Decision::Write>(next)) {
      part.next("status");
      HANGAR_CO_TRY(co_await write());
      HANGAR_CO_TRY(co_await remove_signals());
    } else if (const auto* const execute = std::get_if<Decision::Execute>(&next)) {
      part.next("action");
      HANGAR_CO_TRY(co_await carry_out(*execute));
    } else {
      part.next("status");
      // The conditions may have changed although the ledger did not. Removing signals may reveal
      // further ones, for which no watch event will come.
      HANGAR_CO_TRY(co_await write());
      HANGAR_CO_TRY(co_await remove_signals());
    }
  }
}

// Writes only the conditions: the rest stays for the person who repairs the spec or the status.
io::Task<Result<>> Reconciliation::say_only() {
  const json::Value before = reconcile::status_of(manifest_);
  json::Value status = before;
  put_conditions(status, decision_.ledger(), problem_,
                 json::int_at(manifest_, {"metadata", "generation"}), io::Loop::wall_now());
  if (!json::equal(before, status)) HANGAR_CO_TRY(co_await send_status(std::move(status)));
  co_return Result<>();
}

// Actions ------------------------------------------------------------------------------------

io::Task<Result<>> Reconciliation::carry_out(Decision::Execute next) {
  const Ledger& ledger = decision_.ledger();
  const auto found = std::ranges::find(ledger.outbox, next.id, &PendingAction::id);
  HANGAR_ASSERT(found != ledger.outbox.end(), "what is carried out is in the outbox");
  const PendingAction action = *found;
  if (!kind_of(action.type)) {
    decision_.on_unknown(action.id);
    co_return Result<>();
  }
  const WallTime asked = io::Loop::wall_now();
  const Owner owner = decision_.owner();
  Result<ActionPlan> plan = plan_action(owner, action);
  if (!plan) {
    (void)decision_.on_failed(
        action.id, {.reason = "InvalidInput", .message = plan.error().message(), .is_final = true},
        {}, 0, asked);
    action_failed(action, plan.error().message(), asked);
    co_return Result<>();
  }
  const RetryPolicy policy = plan->retry;
  const ActionKind kind = plan->kind;
  if (kind == ActionKind::DeleteResources) decision_.abandon_before(action.id);
  std::vector<std::int64_t> others;
  for (const PendingAction& other : ledger.outbox) {
    if (other.id != action.id) others.push_back(other.id);
  }
  recording_.action_begins(action, ledger.sha256);
  const Executor::Ended ended =
      HANGAR_CO_TRY(co_await parts_.executor.execute({.owner = owner,
                                                      .service_account = workflow_.service_account,
                                                      .action = action,
                                                      .plan = *std::move(plan),
                                                      .is_fresh = next.is_fresh,
                                                      .resources = ledger.resources,
                                                      .others = std::move(others),
                                                      .recording = recording_},
                                                     stop_));
  recording_.action_ended(action);
  const WallTime now = io::Loop::wall_now();
  if (const auto* const done = std::get_if<Executor::Done>(&ended)) {
    if (kind == ActionKind::DeleteResources) decision_.drop_resources();
    if (!done->seen.empty()) decision_.on_made(done->event, done->seen);
    decision_.on_done(action.id, done->event);
    parts_.instruments.action_ended(action, ActionOutcome::Done, now);
  } else if (const auto* const pinned = std::get_if<Executor::Pinned>(&ended)) {
    decision_.on_pinned(action.id, pinned->uid);
  } else if (const auto* const waits = std::get_if<Executor::Waits>(&ended)) {
    if (!decision_.on_waiting(action.id, waits->what, now, waits->problem)) {
      action_failed(action, "timed out: " + waits->what, now);
    } else if (waits->look_again) {
      const WallTime due = now + std::chrono::duration_cast<WallTime::duration>(*waits->look_again);
      look_again_ = look_again_ ? std::min(*look_again_, due) : due;
    }
  } else {
    const auto& failure = std::get<Decision::Failure>(ended);
    const double jitter = std::uniform_real_distribution<double>(0, 1)(parts_.random);
    if (decision_.on_failed(action.id, failure, policy, jitter, now)) {
      parts_.instruments.action_retried(action);
    } else {
      action_failed(action, failure.message, now);
    }
  }
  pass(CrashPoint::Acknowledged);
  co_return Result<>();
}

// The action has failed for good: a FAILURE notifies the machine, this notifies people.
void Reconciliation::action_failed(const PendingAction& action, std::string_view why,
                                   WallTime now) {
  parts_.instruments.action_ended(action, ActionOutcome::Failed, now);
  parts_.platform.events.record(manifest_,
                                {.type = reconcile::EventType::Warning,
                                 .reason = "ActionFailed",
                                 .message = fmt::format("{}#{}: {}", action.type, action.id, why)});
}

void Reconciliation::skip_action() {
  const std::string_view wanted = kube::annotation_of(manifest_, kSkipAnnotation);
  if (wanted.empty()) return;
  for (const PendingAction& action : decision_.ledger().outbox) {
    if (fmt::format("{}", action.id) != wanted) continue;
    parts_.instruments.action_ended(action, ActionOutcome::Skipped, io::Loop::wall_now());
    (void)decision_.on_failed(
        action.id,
        {.reason = "Skipped",
         .message = fmt::format("{}#{} was skipped on request", action.type, action.id),
         .is_final = true},
        {}, 0, io::Loop::wall_now());
    return;
  }
}

// What arrives -------------------------------------------------------------------------------

void Reconciliation::take_signals() {
  if (!decision_.ledger().has_begun()) return;  // The signals wait as annotations.
  std::size_t count = 0;
  for (Signal& signal : signals_of(manifest_)) {
    if (++count > kSignalsPerReconcile) return;
    if (signal.event) {
      (void)decision_.on_signal(std::move(signal.id), *std::move(signal.event), signals_version_);
      continue;
    }
    parts_.platform.events.record(
        manifest_, {.type = reconcile::EventType::Warning,
                    .reason = "SignalRefused",
                    .message = fmt::format("the annotation {}{}: {}", kSignalPrefix, signal.id,
                                           signal.event.error().message())});
    decision_.refuse_signal(std::move(signal.id));
  }
}

// Their ids are written: from now on their annotations have no effect.
io::Task<Result<>> Reconciliation::remove_signals() {
  std::vector<std::string> taken;
  const std::vector<std::string>& known = decision_.ledger().signals;
  for (const Signal& signal : signals_of(manifest_)) {
    if (std::ranges::find(known, signal.id) != known.end()) taken.push_back(signal.id);
  }
  if (taken.empty()) co_return Result<>();
  pass(CrashPoint::SignalsWritten);
  const kube::Resource& kind = parts_.shell.kind();
  recording_.status_begins(decision_.ledger().sha256);
  Result<json::Value> answer = co_await recording_.recorded(
      {.verb = recorder::Verb::Patch,
       .resource = kind,
       .key = key_,
       .field_manager = kFieldManager,
       .version = reconcile::version_of(manifest_)},
      [&](kube::RequestObserver* observer) {
        return parts_.shell.patch(key_, kube::PatchType::Merge, removal_of_signals(taken), stop_,
                                  observer);
      });
  if (!answer) {
    co_return std::unexpected(std::move(answer).error().in("take the signals off"));
  }
  manifest_ = *std::move(answer);
  // Further signals may have come with a version that this host has not seen.
  signals_version_ = 0;
  take_signals();
  co_return Result<>();
}

// Compares the objects that the workflow made with what its machine knows about them.
io::Task<Result<>> Reconciliation::take_changes() {
  if (!decision_.ledger().has_begun() || decision_.ledger().is_finished()) co_return Result<>();
  const std::vector<OwnedResource> resources = decision_.ledger().resources;
  for (std::size_t i = 0; i < resources.size(); ++i) {
    const OwnedResource& resource = resources[i];
    if (!is_followed(resource)) continue;
    const Result<Executor::Place> place = co_await parts_.executor.find(
        key_, kube::make_gvk(resource.api_version, resource.kind),
        {.namespace_ = resource.namespace_, .name = resource.name}, stop_);
    if (!place) continue;  // Its kind is gone or may not be read: nothing to report.
    const kube::Cache::Subscription& made = parts_.watches.children(place->resource);
    if (!made.is_synced()) continue;  // Once it is synced, it enqueues the workflow.
    const kube::ObjectPtr live = made.get(place->key);
    Sighting sighting{.watch = made.resource_version()};
    if (live) sighting.live = live->resource_version();
    std::optional<ResourceChange> change = change_of(resource, sighting);
    if (change) decision_.on_change(i, std::move(change->seen), std::move(change->event));
  }
  co_return Result<>();
}

// The status ---------------------------------------------------------------------------------

io::Task<Result<>> Reconciliation::write() {
  const json::Value before = reconcile::status_of(manifest_);
  json::Value status = before;
  if (decision_.ledger().has_begun()) put_ledger(status, decision_.ledger());
  put_conditions(status, decision_.ledger(), problem_, workflow_.generation, io::Loop::wall_now());
  if (json::equal(status, before)) {
    decision_.on_written();
    co_return Result<>();
  }
  if (!parts_.keeps_ledgers && decision_.ledger().has_begun()) {
    const json::Value tried =
        HANGAR_CO_TRY(co_await recorded_status(IsDryRun::Yes, [&](kube::RequestObserver* observer) {
          return parts_.shell.try_status(manifest_, status, stop_, observer);
        }));
    if (!is_kept_in(tried, decision_.ledger())) co_return co_await refuse_schema(before);
    parts_.keeps_ledgers = true;
  }
  HANGAR_CO_TRY(co_await send_status(std::move(status)));
  if (!is_kept_in(manifest_, decision_.ledger())) {
    parts_.keeps_ledgers = false;
    co_return co_await refuse_schema(before);
  }
  decision_.on_written();
  if (!unpinned_.empty()) parts_.on_unpinned(std::exchange(unpinned_, {}));
  announce();
  co_return Result<>();
}

// The API server drops the fields that its schema does not have. No action of this ledger has been
// carried out yet, and none must be: the host would carry it out again and again.
io::Task<Result<>> Reconciliation::refuse_schema(json::Value before) {
  problem_ =
      Problem{.reason = "SchemaOutdated",
              .message =
                  "the cluster's CustomResourceDefinition drops fields in which workflows keep "
                  "their state: "
                  "apply deploy/crds/statefulworkflows.workflows.example.com.yaml, which has the "
                  "published fields and more. The workflow then continues"};
  json::Value status = std::move(before);
  put_conditions(status, Ledger(), problem_, workflow_.generation, io::Loop::wall_now());
  HANGAR_CO_TRY(co_await send_status(std::move(status)));
  co_return fail(ErrorKind::Unavailable, problem_->message);
}

// Writes only over the exact version of the object that the status was decided for.
io::Task<Result<>> Reconciliation::send_status(json::Value status) {
  pass(CrashPoint::BeforeWrite);
  Result<json::Value> answer =
      co_await recorded_status(IsDryRun::No, [&](kube::RequestObserver* observer) {
        return parts_.shell.write_status(manifest_, std::move(status), reconcile::StatusOf::Version,
                                         stop_, observer);
      });
  pass(CrashPoint::AfterWrite);
  if (!answer) co_return std::unexpected(std::move(answer).error());
  manifest_ = *std::move(answer);
  co_return Result<>();
}

kube::Client::ValueTask Reconciliation::recorded_status(IsDryRun dry_run,
                                                        StepRecording::Send send) {
  recording_.status_begins(decision_.ledger().sha256);
  co_return co_await recording_.recorded({.verb = recorder::Verb::Patch,
                                          .resource = parts_.shell.kind(),
                                          .key = key_,
                                          .subresource = "status",
                                          .field_manager = kFieldManager,
                                          .is_dry_run = dry_run == IsDryRun::Yes,
                                          .version = reconcile::version_of(manifest_)},
                                         std::move(send));
}

// Announces what the write has made true.
void Reconciliation::announce() {
  const std::vector<Decision::Transition> transitions = decision_.take_transitions();
  for (const Decision::Transition& transition : transitions) {
    if (transition.stayed) parts_.instruments.state_seconds.observe(in_seconds(*transition.stayed));
  }
  for (reconcile::EventText& text : announcements_of(transitions, decision_.take_ignored(),
                                                     decision_.ledger().value, problem_)) {
    parts_.platform.events.record(manifest_, std::move(text));
  }
}

}  // namespace hangar::workflows
