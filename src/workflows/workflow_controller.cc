#include "workflows/workflow_controller.h"

#include "base/limits.h"
#include "base/time.h"
#include "reconcile/predicates.h"
#include "workflows/actions.h"
#include "workflows/crash_points.h"
#include "workflows/ledger.h"
#include "workflows/signals.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::workflows {

namespace {

using abi::statemachine::Step;

constexpr std::string_view kFieldManager = "hangar-workflows";

// An event that means nothing: whether a machine answers it says whether it knows the state.
constexpr std::string_view kProbe = R"({"type":"hangar.probe"})";

// In one reconcile: the others come in the next one, once these are off the object.
constexpr std::size_t kSignalsPerReconcile = 64;

kube::Resource config_maps() {
  return {.version = "v1", .plural = "configmaps", .kind = "ConfigMap", .namespaced = true};
}

double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// Seconds to a month: states last for as long as people take.
std::vector<double> long_buckets() {
  return {0.1, 1, 10, 60, 600, 3600, 21600, 86400, 604800, 2592000};
}

// A word that no earlier run of an object had.
std::string run_of(WallTime now) {
  const auto micros =
      std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count();
  return fmt::format("{:x}", micros);
}

std::string advice_for_status(const kube::ObjectKey& key) {
  return fmt::format(
      "put back what was there, or begin anew: kubectl patch statefulworkflow {} -n {} "
      "--subresource=status --type=json -p '[{{\"op\":\"remove\",\"path\":\"/status\"}}]'",
      key.name, key.namespace_);
}

}  // namespace

struct WorkflowController::Instruments {
  explicit Instruments(Metrics& metrics_in)
      : metrics(metrics_in),
        transitions(metrics.counter("hangar_workflow_transitions_total",
                                    "Transitions of workflows' machines.")),
        ignored(metrics.counter("hangar_workflow_events_ignored_total",
                                "Events that the state they came in did not know.")),
        step_seconds(metrics.histogram("hangar_workflow_step_seconds",
                                       "How long a machine took to decide.", latency_buckets())),
        state_seconds(metrics.histogram("hangar_workflow_state_seconds",
                                        "How long workflows stayed in a state.", long_buckets())) {}

  // Of the catalogue, so that machines make no series.
  [[nodiscard]] static std::string label_of(const std::string& type) {
    return kind_of(type) ? type : "other";
  }
  void action_ended(const PendingAction& action, std::string_view outcome, WallTime now) const {
    const std::string type = label_of(action.type);
    metrics
        .counter("hangar_workflow_actions_total", "Actions that ended, by type and outcome.",
                 {{"action", type}, {"outcome", std::string(outcome)}})
        .add();
    metrics
        .histogram("hangar_workflow_action_seconds",
                   "From the asking for an action to its end, retries included.", long_buckets(),
                   {{"action", type}})
        .observe(seconds(now - action.requested_at));
  }
  void action_retried(const PendingAction& action) const {
    metrics
        .counter("hangar_workflow_action_retries_total", "Attempts that failed and are repeated.",
                 {{"action", label_of(action.type)}})
        .add();
  }

  Metrics& metrics;
  Counter& transitions;
  Counter& ignored;
  Histogram& step_seconds;
  Histogram& state_seconds;
};

// One reconcile's view of its workflow.
struct WorkflowController::Work {
  kube::ObjectKey key;
  std::stop_token stop;
  json::Value manifest;  // The newest state; replaced by the answer to each of our writes.
  Workflow workflow;
  Decision decision;
  std::shared_ptr<abi::statemachine::Machine> machine = {};
  Decision::Revision revision = {};  // Of `machine`.
  std::optional<Problem> problem = {};
  std::optional<Error> retry = {};  // Why it is to be tried again although nothing happens.
};

WorkflowController::WorkflowController(const Host& host)
    : host_(host),
      log_(host.log.named("workflows")),
      instruments_(std::make_unique<Instruments>(host.metrics)),
      watches_(host.cache,
               [this](const kube::ObjectKey& workflow) { controller_.enqueue(workflow); }),
      executor_(host.client, host.discovery, watches_),
      random_(std::random_device()()),
      controller_(host.loop, host.metrics, log_,
                  {.name = "statefulworkflow",
                   .concurrency = host.concurrency,
                   .turnstile = &host_.turnstile},
                  [this](kube::ObjectKey key, std::stop_token stop) {
                    return reconcile(std::move(key), std::move(stop));
                  }) {}

WorkflowController::~WorkflowController() = default;

void WorkflowController::start() {
  controller_.start();
  subscription_ =
      host_.cache.subscribe({.resource = workflow_resource()},
                            {.on_delta = [this](const kube::Delta& delta) { on_workflow(delta); }});
}

io::Task<void> WorkflowController::stop() {
  subscription_.reset();
  co_await controller_.stop();
}

void WorkflowController::on_workflow(const kube::Delta& delta) {
  const kube::ObjectKey& key = delta.object->key();
  if (const auto found = latest_.find(key); found != latest_.end()) {
    const kube::Object& latest = *found->second;
    const bool is_same_object = latest.uid() == delta.object->uid();
    // The answer to our own write told this, or more, before.
    if (is_same_object && delta.type == kube::Delta::Type::Modified &&
        reconcile::is_older(delta.object->resource_version(), latest.resource_version())) {
      return;
    }
    const bool is_ours = is_same_object && delta.type == kube::Delta::Type::Modified &&
                         delta.object->resource_version() == latest.resource_version();
    latest_.erase(found);
    if (is_ours) return;
  }
  controller_.enqueue(key);
}

kube::ObjectPtr WorkflowController::newest(const kube::ObjectKey& key) const {
  kube::ObjectPtr cached = subscription_ ? subscription_->get(key) : nullptr;
  const auto found = latest_.find(key);
  if (cached && found != latest_.end() && cached->uid() == found->second->uid() &&
      reconcile::is_older(cached->resource_version(), found->second->resource_version())) {
    return found->second;
  }
  return cached;
}

void WorkflowController::remember(const kube::ObjectKey& key, const json::Value& answer) {
  Result<kube::ObjectPtr> object = kube::Object::make(answer, workflow_resource().gvk());
  if (!object) return;
  const kube::ObjectPtr cached = subscription_ ? subscription_->get(key) : nullptr;
  // The watch may be faster than the answer.
  const bool is_known =
      !cached || cached->uid() != (*object)->uid() ||
      !reconcile::is_older(cached->resource_version(), (*object)->resource_version());
  if (is_known) {
    latest_.erase(key);
  } else {
    latest_[key] = *std::move(object);
  }
}

io::Task<Result<reconcile::Outcome>> WorkflowController::reconcile(kube::ObjectKey key,
                                                                   std::stop_token stop) {
  const kube::ObjectPtr object = newest(key);
  watches_.begin(key);
  if (!object || object->is_being_deleted()) {
    watches_.release(key);
    if (!object) latest_.erase(key);
    co_return Outcome{};
  }
  json::Value manifest = object->to_value();
  Result<Workflow> workflow = parse_workflow(manifest);
  Result<Ledger> ledger = parse_ledger(json::find(manifest, {"status"}));
  std::optional<Problem> problem;
  if (!workflow) {
    problem = Problem{.reason = "SpecInvalid", .message = workflow.error().message()};
  } else if (!ledger) {
    problem =
        Problem{.reason = "StatusInvalid",
                .message = fmt::format("{}: {}", ledger.error().message(), advice_for_status(key))};
  }
  Rules rules{.key = key};
  if (workflow) {
    rules = {.key = key,
             .uid = workflow->uid,
             .history_max = workflow->history_max,
             .timeout = workflow->timeout,
             .state_timeouts = workflow->state_timeouts};
  }
  Work work{.key = key,
            .stop = std::move(stop),
            .manifest = std::move(manifest),
            .workflow = workflow ? *std::move(workflow) : Workflow{},
            .decision = Decision(ledger ? *std::move(ledger) : Ledger(), std::move(rules)),
            .problem = problem};
  if (problem) {
    json::Value status = json::Object();
    if (const json::Value* const present = json::find(work.manifest, {"status"});
        present != nullptr && present->is_object()) {
      status = *present;
    }
    co_return co_await say_only(work, std::move(status));
  }
  Result<Outcome> outcome = co_await go_on(work);
  watches_.release(key);
  co_return outcome;
}

// Only the conditions: the rest stays as it is, for whoever mends the spec or the status.
io::Task<Result<reconcile::Outcome>> WorkflowController::say_only(Work& work, json::Value status) {
  const json::Value before = status;
  put_conditions(status, work.decision.ledger(), work.problem,
                 json::int_at(work.manifest, {"metadata", "generation"}), io::Loop::wall_now());
  if (!json::equal(before, status)) HANGAR_CO_TRY(co_await send_status(work, std::move(status)));
  co_return fail(ErrorKind::InvalidInput, work.problem->message);
}

io::Task<Result<reconcile::Outcome>> WorkflowController::go_on(Work& work) {
  if (work.decision.ledger().is_foreign) HANGAR_CO_TRY(co_await check_foreign_state(work));
  take_signals(work);
  skip_action(work);
  HANGAR_CO_TRY(co_await migrate(work));
  HANGAR_CO_TRY(co_await take_changes(work));
  while (true) {
    const WallTime now = io::Loop::wall_now();
    const Decision::Next next = work.decision.next(now);
    if (std::holds_alternative<Decision::Start>(next)) {
      HANGAR_CO_TRY(co_await begin(work));
    } else if (std::holds_alternative<Decision::Ask>(next)) {
      HANGAR_CO_TRY(co_await decide(work));
    } else if (std::holds_alternative<Decision::Write>(next)) {
      HANGAR_CO_TRY(co_await write(work));
      HANGAR_CO_TRY(co_await remove_signals(work));
    } else if (const auto* const execute = std::get_if<Decision::Execute>(&next)) {
      HANGAR_CO_TRY(co_await carry_out(work, *execute));
    } else {
      // The conditions may have changed although the ledger did not.
      HANGAR_CO_TRY(co_await write(work));
      HANGAR_CO_TRY(co_await remove_signals(work));
      const std::optional<WallTime> until = std::get<Decision::Wait>(next).until;
      // Deadlines go on although the machine cannot decide.
      const bool is_terminal = work.retry && work.retry->kind() == ErrorKind::InvalidInput;
      if (work.retry && !(is_terminal && until)) co_return std::unexpected(*work.retry);
      if (!until) co_return Outcome{};
      // A millisecond later rather than a moment too early; never at once, which would mean the
      // back-off.
      const Duration delay = std::max<Duration>(*until - now, Duration::zero());
      co_return Outcome{.requeue_after = delay + std::chrono::milliseconds(1)};
    }
  }
}

// The machine --------------------------------------------------------------------------------

io::Task<Result<>> WorkflowController::need_machine(Work& work) {
  if (work.machine) co_return Result<>();
  const MachineSource source{.reference = work.workflow.module,
                             .sha256 = work.workflow.module_sha256,
                             .insecure = work.workflow.insecure};
  const std::string pinned = work.decision.ledger().sha256;
  Result<MachineModule> module = fail(ErrorKind::NotFound, "the module was never loaded");
  if (!pinned.empty()) module = co_await host_.modules.load(pinned, work.stop);
  const bool may_ask = pinned.empty() || (!module && module.error().kind() == ErrorKind::NotFound);
  if (may_ask) {
    MachineSource wanted = source;
    if (!pinned.empty()) wanted.sha256 = pinned;
    module = co_await host_.modules.prepare(std::move(wanted), work.stop);
  }
  if (!module) co_return std::unexpected(std::move(module).error());
  work.machine = module->machine;
  work.revision = {.sha256 = module->sha256, .resolved = module->resolved};
  co_return Result<>();
}

// Says what is wrong with the module, and when to try again. Only what is nobody's fault but ours
// is an error.
Result<> WorkflowController::on_module_error(Work& work, const Error& error) {
  if (error.kind() == ErrorKind::Cancelled) return std::unexpected(error);
  work.decision.on_stuck();
  const std::string pinned = work.decision.ledger().sha256;
  if (work.workflow.config_map) {
    // Goes on as soon as it appears or changes.
    watches_.watch_object(work.key, config_maps(),
                          {.namespace_ = work.key.namespace_, .name = *work.workflow.config_map});
  }
  const bool is_absent = error.kind() == ErrorKind::NotFound;
  if (!pinned.empty()) {
    work.problem = Problem{
        .reason = is_absent ? "ModuleGone" : "ModuleUnavailable",
        .message = fmt::format(
            "the workflow began with the module sha256:{}, which is not here any more, and {}: put "
            "it back, or let the workflow go on with what is there now by the annotation {}",
            pinned, error.message(), kMigrateAnnotation)};
    work.retry = Error(ErrorKind::Unavailable, error.message());
    return {};
  }
  // The API server's word: the ConfigMap itself, not something in it, is missing.
  const bool is_awaited = work.workflow.config_map && kube::reason_of(error) == "NotFound";
  work.problem = Problem{.reason = is_awaited ? "WaitingForModule" : "ModuleInvalid",
                         .message = error.message(),
                         .is_waiting = is_awaited};
  if (is_awaited) {
    work.problem->message =
        fmt::format("{}: make the ConfigMap {} in namespace {}; the workflow begins then",
                    error.message(), *work.workflow.config_map, work.key.namespace_);
  } else if (error.kind() == ErrorKind::Unavailable || error.kind() == ErrorKind::Denied) {
    work.problem->reason = "ModuleUnavailable";
  }
  // A ConfigMap is watched, everything else is asked for again.
  work.retry = work.workflow.config_map && error.kind() != ErrorKind::Unavailable
                   ? Error(ErrorKind::InvalidInput, error.message())
                   : Error(ErrorKind::Unavailable, error.message());
  return {};
}

Result<> WorkflowController::on_machine_error(Work& work, const Error& error,
                                              std::string_view doing) {
  if (error.kind() == ErrorKind::Cancelled) return std::unexpected(error);
  work.decision.on_stuck();
  std::string_view reason = "MachineFailed";
  if (error.kind() == ErrorKind::LimitExceeded) reason = "LimitExceeded";
  if (error.kind() == ErrorKind::InvalidInput) reason = "AnswerInvalid";
  work.problem = Problem{
      .reason = std::string(reason),
      .message = fmt::format("{}: {}. Mend the machine and set the annotation {}: the event waits",
                             doing, error.message(), kMigrateAnnotation)};
  work.retry = Error(ErrorKind::InvalidInput, error.message());
  return {};
}

io::Task<Result<>> WorkflowController::begin(Work& work) {
  const Result<> loaded = co_await need_machine(work);
  if (!loaded) co_return on_module_error(work, loaded.error());
  const Instant began = io::Loop::now();
  const Result<Step> step = co_await work.machine->start(work.workflow.input, work.stop);
  instruments_->step_seconds.observe(seconds(io::Loop::now() - began));
  pass(CrashPoint::Decided);
  if (step) keep_output(work, *step);
  const WallTime now = io::Loop::wall_now();
  const Result<> taken = step ? work.decision.on_started(*step, work.revision, run_of(now), now)
                              : Result<>(std::unexpected(step.error()));
  if (!taken) {
    // A new ConfigMap may mend it: nothing has begun.
    if (work.workflow.config_map) {
      watches_.watch_object(work.key, config_maps(),
                            {.namespace_ = work.key.namespace_, .name = *work.workflow.config_map});
    }
    co_return on_machine_error(work, taken.error(), "the machine could not begin");
  }
  co_return Result<>();
}

io::Task<Result<>> WorkflowController::decide(Work& work) {
  const Result<> loaded = co_await need_machine(work);
  if (!loaded) co_return on_module_error(work, loaded.error());
  const std::string type(type_of(work.decision.event().body));
  const Instant began = io::Loop::now();
  const Result<Step> step = co_await work.machine->step(
      work.decision.ledger().state, json::dump(work.decision.event().body), work.stop);
  instruments_->step_seconds.observe(seconds(io::Loop::now() - began));
  pass(CrashPoint::Decided);
  if (step) {
    (step->is_handled ? instruments_->transitions : instruments_->ignored).add();
    keep_output(work, *step);
  }
  const Result<> taken = step ? work.decision.on_decided(*step, io::Loop::wall_now())
                              : Result<>(std::unexpected(step.error()));
  if (!taken) {
    co_return on_machine_error(
        work, taken.error(),
        fmt::format("in state {}, at the event {}", work.decision.ledger().value, type));
  }
  co_return Result<>();
}

// What a machine prints is for whoever reads the host's log.
void WorkflowController::keep_output(const Work& work, const Step& step) const {
  if (step.log.empty()) return;
  log_.info("a machine printed",
            {{"namespace", work.key.namespace_}, {"name", work.key.name}, {"output", step.log}});
}

// Somebody else wrote the state: fine, if the machine knows it.
io::Task<Result<>> WorkflowController::check_foreign_state(Work& work) {
  const Result<> loaded = co_await need_machine(work);
  if (!loaded) co_return on_module_error(work, loaded.error());
  const Result<Step> step =
      co_await work.machine->step(work.decision.ledger().state, std::string(kProbe), work.stop);
  if (!step && step.error().kind() == ErrorKind::Cancelled) co_return std::unexpected(step.error());
  if (!step) {
    work.decision.on_stuck();
    work.problem = Problem{
        .reason = "StatusInvalid",
        .message = fmt::format("status.state was edited, and the machine does not know it ({}): {}",
                               step.error().message(), advice_for_status(work.key))};
    work.retry = Error(ErrorKind::InvalidInput, step.error().message());
    co_return Result<>();
  }
  const WallTime now = io::Loop::wall_now();
  work.decision.adopt(work.revision, step->is_handled ? std::string() : step->value, run_of(now),
                      now);
  co_return Result<>();
}

io::Task<Result<>> WorkflowController::migrate(Work& work) {
  const std::string request(kube::annotation_of(work.manifest, kMigrateAnnotation));
  const Ledger& ledger = work.decision.ledger();
  const bool is_new = !request.empty() && ledger.has_begun() &&
                      (!ledger.migration || ledger.migration->request != request);
  if (!is_new) co_return Result<>();

  const auto refuse = [&](const std::string& why) {
    const std::string message =
        fmt::format("refused: {}. The workflow goes on with sha256:{}", why, ledger.sha256);
    host_.events.record(
        work.manifest,
        {.type = reconcile::EventType::Warning, .reason = "MigrationRefused", .message = message});
    work.decision.on_migrated({.request = request, .is_done = false, .message = message},
                              std::nullopt);
  };
  Result<MachineModule> module =
      co_await host_.modules.prepare({.reference = work.workflow.module,
                                      .sha256 = work.workflow.module_sha256,
                                      .insecure = work.workflow.insecure},
                                     work.stop);
  if (!module && module.error().kind() == ErrorKind::Cancelled) {
    co_return std::unexpected(module.error());
  }
  if (!module) {
    refuse(module.error().message());
    co_return Result<>();
  }
  const Result<Step> step =
      co_await module->machine->step(ledger.state, std::string(kProbe), work.stop);
  if (!step && step.error().kind() == ErrorKind::Cancelled) co_return std::unexpected(step.error());
  if (!step) {
    refuse(fmt::format("the machine of sha256:{} does not know the state {}: {}", module->sha256,
                       ledger.value, step.error().message()));
    co_return Result<>();
  }
  const std::string message = fmt::format("from sha256:{} to sha256:{} in state {}", ledger.sha256,
                                          module->sha256, ledger.value);
  host_.events.record(work.manifest, {.reason = "Migrated", .message = message});
  work.machine = module->machine;
  work.revision = {.sha256 = module->sha256, .resolved = module->resolved};
  work.decision.on_migrated({.request = request, .is_done = true, .message = message},
                            work.revision);
  // What the old machine could not do is tried with the new one.
  work.problem.reset();
  work.retry.reset();
  co_return Result<>();
}

// Actions ------------------------------------------------------------------------------------

io::Task<Result<>> WorkflowController::carry_out(Work& work, Decision::Execute next) {
  const Ledger& ledger = work.decision.ledger();
  const auto found = std::ranges::find(ledger.outbox, next.id, &PendingAction::id);
  const PendingAction action = *found;
  if (!kind_of(action.type)) {
    work.decision.on_unknown(action.id);
    co_return Result<>();
  }
  const WallTime asked = io::Loop::wall_now();
  const Owner owner = work.decision.owner();
  Result<ActionPlan> plan = plan_action(owner, action);
  if (!plan) {
    (void)work.decision.on_failed(
        action.id, {.reason = "InvalidInput", .message = plan.error().message(), .is_final = true},
        {}, 0, asked);
    instruments_->action_ended(action, "failed", asked);
    co_return Result<>();
  }
  const RetryPolicy policy = plan->retry;
  const ActionKind kind = plan->kind;
  if (kind == ActionKind::DeleteResources) work.decision.abandon_before(action.id);
  const Executor::Ended ended =
      HANGAR_CO_TRY(co_await executor_.execute({.owner = owner,
                                                .service_account = work.workflow.service_account,
                                                .action = action,
                                                .plan = *std::move(plan),
                                                .is_fresh = next.is_fresh,
                                                .resources = ledger.resources},
                                               work.stop));
  const WallTime now = io::Loop::wall_now();
  if (const auto* const done = std::get_if<Executor::Done>(&ended)) {
    if (kind == ActionKind::DeleteResources) work.decision.drop_resources();
    if (!done->seen.empty()) work.decision.on_made(done->event, done->seen);
    work.decision.on_done(action.id, done->event);
    instruments_->action_ended(action, "done", now);
  } else if (const auto* const pinned = std::get_if<Executor::Pinned>(&ended)) {
    work.decision.on_pinned(action.id, pinned->uid);
  } else if (std::holds_alternative<Executor::Waits>(ended)) {
    if (!work.decision.on_waiting(action.id, now))
      instruments_->action_ended(action, "failed", now);
  } else {
    const auto& failure = std::get<Decision::Failure>(ended);
    const double jitter = std::uniform_real_distribution<double>(0, 1)(random_);
    if (work.decision.on_failed(action.id, failure, policy, jitter, now)) {
      instruments_->action_retried(action);
    } else {
      instruments_->action_ended(action, "failed", now);
      host_.events.record(work.manifest, {.type = reconcile::EventType::Warning,
                                          .reason = "ActionFailed",
                                          .message = fmt::format("{}#{}: {}", action.type,
                                                                 action.id, failure.message)});
    }
  }
  pass(CrashPoint::Acknowledged);
  co_return Result<>();
}

void WorkflowController::skip_action(Work& work) {
  const std::string_view wanted = kube::annotation_of(work.manifest, kSkipAnnotation);
  if (wanted.empty()) return;
  for (const PendingAction& action : work.decision.ledger().outbox) {
    if (fmt::format("{}", action.id) != wanted) continue;
    instruments_->action_ended(action, "skipped", io::Loop::wall_now());
    (void)work.decision.on_failed(
        action.id,
        {.reason = "Skipped",
         .message = fmt::format("{}#{} was given up on request", action.type, action.id),
         .is_final = true},
        {}, 0, io::Loop::wall_now());
    return;
  }
}

// What arrives -------------------------------------------------------------------------------

void WorkflowController::take_signals(Work& work) {
  if (!work.decision.ledger().has_begun()) return;  // They wait where they are.
  std::size_t count = 0;
  for (Signal& signal : signals_of(work.manifest)) {
    if (++count > kSignalsPerReconcile) return;
    if (signal.event) {
      (void)work.decision.on_signal(std::move(signal.id), *std::move(signal.event));
      continue;
    }
    host_.events.record(work.manifest,
                        {.type = reconcile::EventType::Warning,
                         .reason = "SignalRefused",
                         .message = fmt::format("the annotation {}{}: {}", kSignalPrefix, signal.id,
                                                signal.event.error().message())});
    work.decision.refuse_signal(std::move(signal.id));
  }
}

// Their ids are written: from now on their annotations say nothing.
io::Task<Result<>> WorkflowController::remove_signals(Work& work) {
  std::vector<std::string> taken;
  const std::vector<std::string>& known = work.decision.ledger().signals;
  for (const Signal& signal : signals_of(work.manifest)) {
    if (std::ranges::find(known, signal.id) != known.end()) taken.push_back(signal.id);
  }
  if (taken.empty()) co_return Result<>();
  pass(CrashPoint::SignalsWritten);
  Result<json::Value> answer = co_await host_.client.patch(
      workflow_resource(), work.key, kube::PatchType::Merge, removal_of_signals(taken),
      {.field_manager = std::string(kFieldManager)}, work.stop);
  if (!answer) {
    co_return std::unexpected(std::move(answer).error().in("take the signals off"));
  }
  work.manifest = *std::move(answer);
  remember(work.key, work.manifest);
  take_signals(work);
  co_return Result<>();
}

// The objects that the workflow made, compared with what its machine was told of them.
io::Task<Result<>> WorkflowController::take_changes(Work& work) {
  if (!work.decision.ledger().has_begun() || work.decision.ledger().is_finished())
    co_return Result<>();
  const std::vector<OwnedResource> resources = work.decision.ledger().resources;
  for (std::size_t i = 0; i < resources.size(); ++i) {
    const OwnedResource& resource = resources[i];
    if (resource.seen.empty() || resource.seen == kSeenDeleted) continue;
    const Result<Executor::Place> place = co_await executor_.find(
        kube::make_gvk(resource.api_version, resource.kind),
        {.namespace_ = resource.namespace_, .name = resource.name}, work.stop);
    if (!place) continue;  // Its kind is gone or cannot be asked for: there is nothing to tell.
    const kube::Cache::Subscription& made = watches_.watch_made(place->resource);
    if (!made.is_synced()) continue;  // It enqueues the workflow once it is.
    const kube::ObjectPtr live = made.get(place->key);
    json::Value event = json::Object{{"type", "K8S_RESOURCE_CHANGED"},
                                     {"resourceName", resource.name},
                                     {"apiVersion", resource.api_version},
                                     {"kind", resource.kind}};
    if (live) {
      if (!reconcile::is_older(resource.seen, live->resource_version())) continue;
      work.decision.on_change(i, std::string(live->resource_version()), std::move(event));
    } else if (reconcile::is_older(resource.seen, made.resource_version())) {
      event.as_object()["type"] = "K8S_RESOURCE_DELETED";
      work.decision.on_change(i, std::string(kSeenDeleted), std::move(event));
    }
  }
  co_return Result<>();
}

// The status ---------------------------------------------------------------------------------

io::Task<Result<>> WorkflowController::write(Work& work) {
  const json::Value* const present = json::find(work.manifest, {"status"});
  json::Value status =
      present != nullptr && present->is_object() ? *present : json::Value(json::Object());
  if (work.decision.ledger().has_begun()) put_ledger(status, work.decision.ledger());
  put_conditions(status, work.decision.ledger(), work.problem, work.workflow.generation,
                 io::Loop::wall_now());
  if (present != nullptr && json::equal(status, *present)) {
    work.decision.on_written();
    co_return Result<>();
  }
  HANGAR_CO_TRY(co_await send_status(work, std::move(status)));
  work.decision.on_written();
  announce(work);
  co_return Result<>();
}

// Only over the very object that it was decided for.
io::Task<Result<>> WorkflowController::send_status(Work& work, json::Value status) {
  json::Value patch = json::Array{
      json::Object{{"op", "replace"},
                   {"path", "/metadata/resourceVersion"},
                   {"value", json::string_at(work.manifest, {"metadata", "resourceVersion"})}},
      json::Object{{"op", "add"}, {"path", "/status"}, {"value", std::move(status)}}};
  pass(CrashPoint::BeforeWrite);
  Result<json::Value> answer = co_await host_.client.patch(
      workflow_resource(), work.key, kube::PatchType::Json, std::move(patch),
      {.field_manager = std::string(kFieldManager), .subresource = "status"}, work.stop);
  pass(CrashPoint::AfterWrite);
  // It is gone: nobody is left to be told.
  if (!answer && answer.error().kind() == ErrorKind::NotFound) {
    co_return fail(ErrorKind::Cancelled, "the workflow is gone");
  }
  if (!answer) {
    co_return std::unexpected(std::move(answer).error().in("write the status"));
  }
  work.manifest = *std::move(answer);
  remember(work.key, work.manifest);
  co_return Result<>();
}

// What the write has made true.
void WorkflowController::announce(Work& work) {
  for (const Decision::Transition& transition : work.decision.take_transitions()) {
    if (transition.stayed) instruments_->state_seconds.observe(seconds(*transition.stayed));
    const std::string message =
        transition.from.empty()
            ? fmt::format("began in {}", transition.to)
            : fmt::format("{} -> {} on {}", transition.from, transition.to, transition.event);
    host_.events.record(work.manifest, {.reason = "Transition", .message = message});
  }
  for (const std::string& type : work.decision.take_ignored()) {
    host_.events.record(work.manifest, {.type = reconcile::EventType::Warning,
                                        .reason = "EventIgnored",
                                        .message = fmt::format("{} means nothing in state {}", type,
                                                               work.decision.ledger().value)});
  }
  if (work.problem && !work.problem->is_waiting) {
    host_.events.record(work.manifest, {.type = reconcile::EventType::Warning,
                                        .reason = work.problem->reason,
                                        .message = work.problem->message});
  }
}

}  // namespace hangar::workflows
