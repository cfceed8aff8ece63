// The part of a Reconciliation that deals with its machine.
#include "abi/statemachine/delays.h"
#include "abi/statemachine/limits.h"
#include "base/seconds.h"
#include "base/time.h"
#include "budget/accounts.h"
#include "io/loop.h"
#include "kube/core_resources.h"
#include "modules/reference.h"
#include "modules/supply.h"
#include "reconcile/conditions.h"
#include "reconcile/custom_resource.h"
#include "reconcile/guest_waits.h"
#include "workflows/crash_points.h"
#include "workflows/ledger.h"
#include "workflows/machine_problem.h"
#include "workflows/migration.h"
#include "workflows/reading.h"
#include "workflows/reconciliation.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::workflows {

namespace {

// An event that machines ignore: whether a machine answers it shows whether it knows the state.
constexpr std::string_view kProbe = R"({"type":"hangar.probe"})";

// The machine could not be asked, or its answer is lost: this says nothing about the machine.
template <class Answer>
bool is_lost(const Result<Answer>& answer) {
  return !answer && answer.error().kind() == ErrorKind::Unavailable;
}

// The delays of a machine and its actors in their present states. None if they cannot be known,
// because the machine does not describe its states, or if they are too many. Unavailable: the
// machine may be asked again.
io::Task<Result<std::optional<std::vector<abi::statemachine::Delay>>>> delays_in(
    std::shared_ptr<abi::statemachine::Machine> machine, std::string state, std::string value,
    std::stop_token stop, abi::statemachine::Asker asker) {
  const Result<std::string> definition = co_await machine->definition(stop, asker);
  if (is_lost(definition)) co_return std::unexpected(definition.error());
  if (!definition) co_return std::nullopt;
  Result<std::vector<abi::statemachine::Delay>> delays =
      abi::statemachine::delays_of(*definition, value);
  if (!delays) co_return std::nullopt;
  const Result<std::vector<abi::statemachine::Actor>> actors =
      co_await machine->actors(std::move(state), std::move(stop), std::move(asker));
  if (is_lost(actors)) co_return std::unexpected(actors.error());
  if (!actors) co_return std::nullopt;
  for (const abi::statemachine::Actor& actor : *actors) {
    if (actor.definition.empty() || !actor.status.empty()) continue;
    const Result<std::vector<abi::statemachine::Delay>> own =
        abi::statemachine::delays_of(actor.definition, actor.value);
    if (!own || delays->size() + own->size() > limits::kMachineDelaysMax) co_return std::nullopt;
    for (abi::statemachine::Delay delay : *own) {
      delay.actor = actor.id;
      delays->push_back(std::move(delay));
    }
  }
  co_return *std::move(delays);
}

// A word that no earlier run of an object had.
std::string run_of(WallTime now) {
  const auto micros =
      std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count();
  return fmt::format("{:x}", micros);
}

}  // namespace

modules::Supply::Answer Reconciliation::ask_for_machine(std::string pinned_sha256,
                                                        std::string_view purpose) {
  MachineSource source = workflow_.machine;
  // The tag may have moved; the old module is still there under its digest.
  if (!pinned_sha256.empty()) {
    const std::string& resolved = decision_.ledger().resolved;
    const Result<modules::Reference> reference = modules::Reference::parse(resolved);
    modules::Source pinned = source.module;
    pinned.reference = resolved;
    if (reference && reference->is_pinned() && parts_.tenant->check_module(pinned)) {
      source.module = std::move(pinned);
    }
  }
  modules::Supply::Answer answer = parts_.modules.supply().ask(
      MachineModules::wish_for(parts_.tenant->requester(key_.namespace_), std::move(source),
                               std::move(pinned_sha256)),
      parts_.asked_since,
      {.name = fmt::format("{} {}", key_.to_string(), purpose), .changed = parts_.on_module});
  is_asking_ = is_asking_ || !answer.is_final();
  return answer;
}

io::Task<Result<Reconciliation::Need>> Reconciliation::need_machine() {
  if (machine_) co_return Need::Met;
  const std::string pinned = decision_.ledger().sha256;
  const modules::Supply::Answer answer = ask_for_machine(pinned, "run");
  if (answer.error) {
    look_again_ =
        io::Loop::wall_now() + std::chrono::duration_cast<WallTime::duration>(answer.retry_in);
    co_return std::unexpected(*answer.error);
  }
  if (!answer.supplied) {
    on_module_awaited(answer.waits_for);
    co_return Need::Awaited;
  }
  const MachineModule module = MachineModules::module_of(*answer.supplied);
  if (!pinned.empty()) {
    // Somebody may have deleted the copy. A failure to store it again does no harm: the module is
    // loaded.
    (void)co_await parts_.archive.keep({.namespace_ = key_.namespace_, .sha256 = module.sha256},
                                       stop_);
  }
  machine_ = module.machine;
  revision_ = {.sha256 = module.sha256, .resolved = module.resolved};
  co_return Need::Met;
}

void Reconciliation::on_module_awaited(const std::string& doing) {
  decision_.on_stuck();
  watch_config_maps();
  const Instant now = io::Loop::now();
  const Instant told_at = parts_.asked_since + modules::kQuiet;
  if (now < told_at) {
    is_quiet_ = true;
    look_again_ =
        io::Loop::wall_now() + std::chrono::duration_cast<WallTime::duration>(told_at - now);
    return;
  }
  problem_ = Problem{.reason = "LoadingModule",
                     .message = fmt::format("the module: {}", doing),
                     .is_waiting = true};
}

io::Task<Result<>> Reconciliation::keep_module(std::string sha256) {
  const archive::ArchivedModule module{.namespace_ = key_.namespace_, .sha256 = std::move(sha256)};
  hold_ = parts_.archive.hold(module);
  const Result<> kept = co_await parts_.archive.keep(module, stop_);
  if (kept) co_return kept;
  const ErrorKind kind = kept.error().kind();
  if (kind == ErrorKind::Cancelled || kind == ErrorKind::Unavailable) co_return kept;
  // A workflow without a copy depends on the host's cache or the source, but that is better than no
  // workflow.
  parts_.platform.events.record(
      manifest_, {.type = reconcile::EventType::Warning,
                  .reason = "ModuleNotKept",
                  .message = fmt::format("cannot keep a copy of the module sha256:{} in this "
                                         "namespace: {}. The workflow continues only while a "
                                         "host's cache or the source still has the module",
                                         module.sha256, kept.error().message())});
  co_return Result<>();
}

// Lets the workflow continue as soon as a ConfigMap appears or changes.
void Reconciliation::watch_config_maps() {
  for (const auto& name : {workflow_.config_map, workflow_.plugin_config_map}) {
    if (!name) continue;
    parts_.watches.hold(key_, {.resource = kube::config_map_resource(),
                               .key = {.namespace_ = key_.namespace_, .name = *name}});
  }
}

// Reports what is wrong with the module; need_machine() has set when to retry. Returns an error
// only for a fault of the host itself.
Result<> Reconciliation::on_module_error(const Error& error) {
  if (error.kind() == ErrorKind::Cancelled) return std::unexpected(error);
  decision_.on_stuck();
  watch_config_maps();
  problem_ = module_problem(workflow_, decision_.ledger(), error);
  return {};
}

Result<> Reconciliation::on_machine_error(const Error& error, std::string_view doing) {
  if (error.kind() == ErrorKind::Cancelled) return std::unexpected(error);
  decision_.on_stuck();
  problem_ = machine_problem(workflow_, decision_.ledger(), error, doing);
  retry_ = machine_retry(workflow_, decision_.ledger(), error);
  return {};
}

// The machine loads, but cannot give its first state.
Result<> Reconciliation::on_unfit_machine(const Error& error) {
  HANGAR_TRY(on_machine_error(error, "loading the machine"));
  watch_config_maps();
  if (error.kind() != ErrorKind::Unavailable) {
    problem_ = module_problem(workflow_, decision_.ledger(), error);
  }
  return {};
}

io::Task<Result<>> Reconciliation::begin() {
  const Result<Need> loaded = co_await need_machine();
  if (!loaded) co_return on_module_error(loaded.error());
  if (*loaded == Need::Awaited) co_return Result<>();
  if (const Result<> fit = co_await machine_->try_out(living_.token(), asker(nullptr)); !fit) {
    co_return on_unfit_machine(fit.error());
  }
  const Instant began = io::Loop::now();
  const StepRecording::Woken woken = recording_.by_beginning();
  abi::statemachine::Cost cost;
  const Result<Step> step =
      co_await answer_of(machine_->start(workflow_.input, living_.token(), asker(&cost)));
  parts_.instruments.step_seconds.observe(in_seconds(io::Loop::now() - began));
  pass(CrashPoint::Decided);
  if (step) keep_output(*step);
  if (step) HANGAR_CO_TRY(co_await keep_module(revision_.sha256));
  const WallTime now = io::Loop::wall_now();
  const Result<> taken = step ? decision_.on_started(*step, revision_, run_of(now), now)
                              : Result<>(std::unexpected(step.error()));
  record_step(woken, began, cost, taken ? &*step : nullptr, 1);
  if (!taken) {
    // A new ConfigMap may repair it, because the workflow has not started.
    watch_config_maps();
    co_return on_machine_error(taken.error(), "requesting the initial state from the machine");
  }
  co_return Result<>();
}

io::Task<Result<>> Reconciliation::decide() {
  const Result<Need> loaded = co_await need_machine();
  if (!loaded) co_return on_module_error(loaded.error());
  if (*loaded == Need::Awaited) co_return Result<>();
  const std::string type(type_of(decision_.event().body));
  const StepRecording::Woken woken = recording_.by_event(decision_.event(), decision_.ledger());
  const std::int64_t actions_from = decision_.ledger().next_action;
  const Instant began = io::Loop::now();
  abi::statemachine::Cost cost;
  const Result<Step> step = co_await answer_of(machine_->step(
      decision_.ledger().state, json::dump(decision_.event().body), living_.token(), asker(&cost)));
  parts_.instruments.step_seconds.observe(in_seconds(io::Loop::now() - began));
  pass(CrashPoint::Decided);
  if (step) {
    (step->is_handled ? parts_.instruments.transitions : parts_.instruments.ignored).add();
    keep_output(*step);
  }
  const Result<> taken = step ? decision_.on_decided(*step, io::Loop::wall_now())
                              : Result<>(std::unexpected(step.error()));
  record_step(woken, began, cost, taken ? &*step : nullptr, actions_from);
  if (!taken) {
    co_return on_machine_error(taken.error(),
                               fmt::format("the machine in state {}, asked about the event {}",
                                           decision_.ledger().value, type));
  }
  co_return Result<>();
}

void Reconciliation::record_step(const StepRecording::Woken& woken, Instant began,
                                 const abi::statemachine::Cost& cost, const Step* step,
                                 std::int64_t actions_from) {
  recording_.stepped(woken,
                     {.began = began,
                      .module_sha256 = revision_.sha256,
                      .cost = cost,
                      .step = step,
                      .actions_from = actions_from},
                     decision_.ledger());
}

abi::statemachine::Asker Reconciliation::asker(abi::statemachine::Cost* cost) const {
  return {.consumer = consumer_of(key_), .cost = cost};
}

io::Task<Result<Reconciliation::Step>> Reconciliation::answer_of(io::Task<Result<Step>> step) {
  return reconcile::tell_waits(
      parts_.platform.waits, asker(nullptr).consumer,
      [this](reconcile::GuestWait wait) { return tell_wait(std::move(wait)); }, std::move(step));
}

// Only informs users. Nothing but the condition is written: the ledger waits for the machine's
// answer.
io::Task<void> Reconciliation::tell_wait(reconcile::GuestWait wait) {
  std::optional<json::Value> status =
      reconcile::status_with_wait(manifest_, wait, workflow_.generation, io::Loop::wall_now());
  if (!status) co_return;
  Result<json::Value> answer = co_await parts_.shell.write_status(
      manifest_, *std::move(status), reconcile::StatusOf::Version, stop_);
  if (answer) manifest_ = *std::move(answer);
}

// Whether `machine` knows the present state of the workflow.
io::Task<Result<Reconciliation::Step>> Reconciliation::probe(
    std::shared_ptr<abi::statemachine::Machine> machine, std::string sha256) {
  const Instant began = io::Loop::now();
  abi::statemachine::Cost cost;
  Result<Step> step = co_await answer_of(
      machine->step(decision_.ledger().state, std::string(kProbe), living_.token(), asker(&cost)));
  recording_.stepped(StepRecording::by_question(),
                     {.began = began,
                      .module_sha256 = sha256,
                      .cost = cost,
                      .step = step ? &*step : nullptr,
                      .actions_from = decision_.ledger().next_action},
                     decision_.ledger());
  co_return step;
}

// Output of a machine goes to the host's log.
void Reconciliation::keep_output(const Step& step) const {
  if (!step.log.empty()) parts_.output.keep(key_, step.log, io::Loop::now());
}

// Another client wrote the state: accepted if the machine knows it.
io::Task<Result<>> Reconciliation::check_foreign_state() {
  const Result<Need> loaded = co_await need_machine();
  if (!loaded) co_return on_module_error(loaded.error());
  if (*loaded == Need::Awaited) co_return Result<>();
  constexpr std::string_view kDoing = "the machine, asked whether it knows the state";
  const Result<Step> step = co_await probe(machine_, revision_.sha256);
  if (!step && step.error().kind() == ErrorKind::Cancelled) co_return std::unexpected(step.error());
  if (is_lost(step)) co_return on_machine_error(step.error(), kDoing);
  if (!step) {
    decision_.on_stuck();
    problem_ = Problem{
        .reason = std::string(kStatusInvalid),
        .message = fmt::format("status.state was edited, and the machine does not know it ({}): {}",
                               step.error().message(), advice_for_status(key_))};
    retry_ = Error(ErrorKind::InvalidInput, step.error().message());
    co_return Result<>();
  }
  const std::string value = step->is_handled ? std::string() : step->value;
  const auto delays = co_await delays_in(
      machine_, decision_.ledger().state,
      value.empty() ? value_json(decision_.ledger().value) : value, stop_, asker(nullptr));
  if (!delays) co_return on_machine_error(delays.error(), kDoing);
  if (decision_.ledger().sha256.empty()) HANGAR_CO_TRY(co_await keep_module(revision_.sha256));
  const WallTime now = io::Loop::wall_now();
  decision_.adopt(revision_, value, step->actors, run_of(now), now);
  if (*delays) decision_.take_delays(**delays, now);
  co_return Result<>();
}

io::Task<Result<>> Reconciliation::migrate() {
  const Ledger& ledger = decision_.ledger();
  const std::string request = open_request(manifest_, ledger);
  if (request.empty()) co_return Result<>();

  const auto refuse = [&](const std::string& why) {
    const std::string message =
        fmt::format("refused: {}. The workflow stays pinned to sha256:{}", why, ledger.sha256);
    parts_.platform.events.record(
        manifest_,
        {.type = reconcile::EventType::Warning, .reason = "MigrationRefused", .message = message});
    decision_.on_migrated({.request = request, .is_done = false, .message = message}, std::nullopt);
  };
  const modules::Supply::Answer answer = ask_for_machine("", "migrate");
  if (answer.error) {
    refuse(answer.error->message());
    co_return Result<>();
  }
  // Meanwhile the workflow continues with its old machine.
  if (!answer.supplied) co_return Result<>();
  const MachineModule module = MachineModules::module_of(*answer.supplied);
  constexpr std::string_view kDoing = "the machine that the workflow is to migrate to";
  const Result<Step> step = co_await probe(module.machine, module.sha256);
  if (!step && step.error().kind() == ErrorKind::Cancelled) co_return std::unexpected(step.error());
  if (is_lost(step)) co_return on_machine_error(step.error(), kDoing);
  if (!step) {
    refuse(fmt::format("the machine of sha256:{} does not know the state {}: {}", module.sha256,
                       ledger.value, step.error().message()));
    co_return Result<>();
  }
  const auto answer_about_delays = co_await delays_in(
      module.machine, ledger.state, value_json(ledger.value), stop_, asker(nullptr));
  if (!answer_about_delays) co_return on_machine_error(answer_about_delays.error(), kDoing);
  const auto& delays = *answer_about_delays;
  if (delays) {
    const std::optional<std::string> obstacle =
        obstacle_of(decision_.missing_delays(*delays), ledger, module.sha256);
    if (obstacle) {
      refuse(*obstacle);
      co_return Result<>();
    }
  }
  HANGAR_CO_TRY(co_await keep_module(module.sha256));
  const std::string message = fmt::format("from sha256:{} to sha256:{} in state {}", ledger.sha256,
                                          module.sha256, ledger.value);
  parts_.platform.events.record(manifest_, {.reason = "Migrated", .message = message});
  machine_ = module.machine;
  revision_ = {.sha256 = module.sha256, .resolved = module.resolved};
  if (ledger.sha256 != module.sha256) unpinned_ = ledger.sha256;
  decision_.on_migrated({.request = request, .is_done = true, .message = message}, revision_);
  if (delays) decision_.take_delays(*delays, ledger.entered_at.value_or(io::Loop::wall_now()));
  // Steps that the old machine failed are retried with the new one.
  problem_.reset();
  retry_.reset();
  co_return Result<>();
}

}  // namespace hangar::workflows
