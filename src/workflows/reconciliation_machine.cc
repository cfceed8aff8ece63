// The part of a Reconciliation that has to do with its machine.
#include "base/time.h"
#include "io/loop.h"
#include "workflows/crash_points.h"
#include "workflows/ledger.h"
#include "workflows/reconciliation.h"

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::workflows {

namespace {

// An event that means nothing: whether a machine answers it says whether it knows the state.
constexpr std::string_view kProbe = R"({"type":"hangar.probe"})";

kube::Resource config_maps() {
  return {.version = "v1", .plural = "configmaps", .kind = "ConfigMap", .namespaced = true};
}

// A word that no earlier run of an object had.
std::string run_of(WallTime now) {
  const auto micros =
      std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count();
  return fmt::format("{:x}", micros);
}

}  // namespace

io::Task<Result<>> Reconciliation::need_machine() {
  if (machine_) co_return Result<>();
  const MachineSource source{.reference = workflow_.module,
                             .sha256 = workflow_.module_sha256,
                             .insecure = workflow_.insecure};
  const std::string pinned = decision_.ledger().sha256;
  Result<MachineModule> module = fail(ErrorKind::NotFound, "the module was never loaded");
  if (!pinned.empty()) module = co_await parts_.modules.load(pinned, stop_);
  const bool may_ask = pinned.empty() || (!module && module.error().kind() == ErrorKind::NotFound);
  if (may_ask) {
    MachineSource wanted = source;
    if (!pinned.empty()) wanted.sha256 = pinned;
    module = co_await parts_.modules.prepare(std::move(wanted), stop_);
  }
  if (!module) co_return std::unexpected(std::move(module).error());
  machine_ = module->machine;
  revision_ = {.sha256 = module->sha256, .resolved = module->resolved};
  co_return Result<>();
}

// So that the workflow goes on as soon as it appears or changes.
void Reconciliation::watch_config_map() {
  if (!workflow_.config_map) return;
  parts_.watches.watch_object(key_, config_maps(),
                              {.namespace_ = key_.namespace_, .name = *workflow_.config_map});
}

// Says what is wrong with the module, and when to try again. Only what is nobody's fault but ours
// is an error.
Result<> Reconciliation::on_module_error(const Error& error) {
  if (error.kind() == ErrorKind::Cancelled) return std::unexpected(error);
  decision_.on_stuck();
  const std::string pinned = decision_.ledger().sha256;
  watch_config_map();
  const bool is_absent = error.kind() == ErrorKind::NotFound;
  if (!pinned.empty()) {
    problem_ = Problem{
        .reason = is_absent ? "ModuleGone" : "ModuleUnavailable",
        .message = fmt::format(
            "the workflow began with the module sha256:{}, which is not here any more, and {}: put "
            "it back, or let the workflow go on with what is there now by the annotation {}",
            pinned, error.message(), kMigrateAnnotation)};
    retry_ = Error(ErrorKind::Unavailable, error.message());
    return {};
  }
  // The API server's word: the ConfigMap itself, not something in it, is missing.
  const bool is_awaited = workflow_.config_map && kube::reason_of(error) == "NotFound";
  problem_ = Problem{.reason = is_awaited ? "WaitingForModule" : "ModuleInvalid",
                     .message = error.message(),
                     .is_waiting = is_awaited};
  if (is_awaited) {
    problem_->message =
        fmt::format("{}: make the ConfigMap {} in namespace {}; the workflow begins then",
                    error.message(), *workflow_.config_map, key_.namespace_);
  } else if (error.kind() == ErrorKind::Unavailable || error.kind() == ErrorKind::Denied) {
    problem_->reason = "ModuleUnavailable";
  }
  // A ConfigMap is watched, everything else is asked for again.
  retry_ = workflow_.config_map && error.kind() != ErrorKind::Unavailable
               ? Error(ErrorKind::InvalidInput, error.message())
               : Error(ErrorKind::Unavailable, error.message());
  return {};
}

Result<> Reconciliation::on_machine_error(const Error& error, std::string_view doing) {
  if (error.kind() == ErrorKind::Cancelled) return std::unexpected(error);
  decision_.on_stuck();
  std::string_view reason = "MachineFailed";
  if (error.kind() == ErrorKind::LimitExceeded) reason = "LimitExceeded";
  if (error.kind() == ErrorKind::InvalidInput) reason = "AnswerInvalid";
  problem_ = Problem{
      .reason = std::string(reason),
      .message = fmt::format("{}: {}. Mend the machine and set the annotation {}: the event waits",
                             doing, error.message(), kMigrateAnnotation)};
  retry_ = Error(ErrorKind::InvalidInput, error.message());
  return {};
}

io::Task<Result<>> Reconciliation::begin() {
  const Result<> loaded = co_await need_machine();
  if (!loaded) co_return on_module_error(loaded.error());
  const Instant began = io::Loop::now();
  const Result<Step> step = co_await machine_->start(workflow_.input, stop_);
  parts_.instruments.step_seconds.observe(in_seconds(io::Loop::now() - began));
  pass(CrashPoint::Decided);
  if (step) keep_output(*step);
  const WallTime now = io::Loop::wall_now();
  const Result<> taken = step ? decision_.on_started(*step, revision_, run_of(now), now)
                              : Result<>(std::unexpected(step.error()));
  if (!taken) {
    // A new ConfigMap may mend it: nothing has begun.
    watch_config_map();
    co_return on_machine_error(taken.error(), "the machine could not begin");
  }
  co_return Result<>();
}

io::Task<Result<>> Reconciliation::decide() {
  const Result<> loaded = co_await need_machine();
  if (!loaded) co_return on_module_error(loaded.error());
  const std::string type(type_of(decision_.event().body));
  const Instant began = io::Loop::now();
  const Result<Step> step =
      co_await machine_->step(decision_.ledger().state, json::dump(decision_.event().body), stop_);
  parts_.instruments.step_seconds.observe(in_seconds(io::Loop::now() - began));
  pass(CrashPoint::Decided);
  if (step) {
    (step->is_handled ? parts_.instruments.transitions : parts_.instruments.ignored).add();
    keep_output(*step);
  }
  const Result<> taken = step ? decision_.on_decided(*step, io::Loop::wall_now())
                              : Result<>(std::unexpected(step.error()));
  if (!taken) {
    co_return on_machine_error(
        taken.error(), fmt::format("in state {}, at the event {}", decision_.ledger().value, type));
  }
  co_return Result<>();
}

// What a machine prints is for whoever reads the host's log.
void Reconciliation::keep_output(const Step& step) const {
  if (step.log.empty()) return;
  parts_.log.info("a machine printed",
                  {{"namespace", key_.namespace_}, {"name", key_.name}, {"output", step.log}});
}

// Somebody else wrote the state: fine, if the machine knows it.
io::Task<Result<>> Reconciliation::check_foreign_state() {
  const Result<> loaded = co_await need_machine();
  if (!loaded) co_return on_module_error(loaded.error());
  const Result<Step> step =
      co_await machine_->step(decision_.ledger().state, std::string(kProbe), stop_);
  if (!step && step.error().kind() == ErrorKind::Cancelled) co_return std::unexpected(step.error());
  if (!step) {
    decision_.on_stuck();
    problem_ = Problem{
        .reason = "StatusInvalid",
        .message = fmt::format("status.state was edited, and the machine does not know it ({}): {}",
                               step.error().message(), advice_for_status(key_))};
    retry_ = Error(ErrorKind::InvalidInput, step.error().message());
    co_return Result<>();
  }
  const WallTime now = io::Loop::wall_now();
  decision_.adopt(revision_, step->is_handled ? std::string() : step->value, run_of(now), now);
  co_return Result<>();
}

io::Task<Result<>> Reconciliation::migrate() {
  const std::string request(kube::annotation_of(manifest_, kMigrateAnnotation));
  const Ledger& ledger = decision_.ledger();
  const bool is_new = !request.empty() && ledger.has_begun() &&
                      (!ledger.migration || ledger.migration->request != request);
  if (!is_new) co_return Result<>();

  const auto refuse = [&](const std::string& why) {
    const std::string message =
        fmt::format("refused: {}. The workflow goes on with sha256:{}", why, ledger.sha256);
    parts_.events.record(
        manifest_,
        {.type = reconcile::EventType::Warning, .reason = "MigrationRefused", .message = message});
    decision_.on_migrated({.request = request, .is_done = false, .message = message}, std::nullopt);
  };
  Result<MachineModule> module = co_await parts_.modules.prepare({.reference = workflow_.module,
                                                                  .sha256 = workflow_.module_sha256,
                                                                  .insecure = workflow_.insecure},
                                                                 stop_);
  if (!module && module.error().kind() == ErrorKind::Cancelled) {
    co_return std::unexpected(module.error());
  }
  if (!module) {
    refuse(module.error().message());
    co_return Result<>();
  }
  const Result<Step> step =
      co_await module->machine->step(ledger.state, std::string(kProbe), stop_);
  if (!step && step.error().kind() == ErrorKind::Cancelled) co_return std::unexpected(step.error());
  if (!step) {
    refuse(fmt::format("the machine of sha256:{} does not know the state {}: {}", module->sha256,
                       ledger.value, step.error().message()));
    co_return Result<>();
  }
  const std::string message = fmt::format("from sha256:{} to sha256:{} in state {}", ledger.sha256,
                                          module->sha256, ledger.value);
  parts_.events.record(manifest_, {.reason = "Migrated", .message = message});
  machine_ = module->machine;
  revision_ = {.sha256 = module->sha256, .resolved = module->resolved};
  decision_.on_migrated({.request = request, .is_done = true, .message = message}, revision_);
  // What the old machine could not do is tried with the new one.
  problem_.reset();
  retry_.reset();
  co_return Result<>();
}

}  // namespace hangar::workflows
