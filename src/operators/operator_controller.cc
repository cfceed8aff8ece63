#include "operators/operator_controller.h"

#include "base/assert.h"
#include "base/time.h"
#include "io/loop.h"
#include "kube/core_resources.h"
#include "modules/reference.h"
#include "modules/requester.h"
#include "operators/guest_inputs.h"
#include "operators/operator_status.h"
#include "reconcile/guest_waits.h"
#include "tenants/policies.h"
#include "tenants/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::operators {

namespace {

using reconcile::Outcome;

constexpr std::string_view kFieldManager = "hangar-operators";

// Figures in the status are for people. A host writes at most this many of them a second, however
// many operators it has.
constexpr double kStatusWritesPerSecond = 20;
constexpr std::chrono::seconds kStatusIntervalMin{5};

// A status in which only figures would change is written this long after the last write. An
// operator that wakes every few seconds would otherwise cost a write for each of its own.
constexpr std::chrono::seconds kFiguresInterval{15};

ShownOperator shown(const RunningOperator& running) {
  PackedOperator::Parts outline = running.outline();
  const std::string* const obstacle = running.module().obstacle();
  return {.phase = running.life().phase(),
          .last_error = running.troubles().last_error,
          .sleep_problem = running.troubles().sleep_problem,
          .obstacle = obstacle != nullptr ? std::optional(*obstacle) : std::nullopt,
          .sleep = outline.spec.sleep.kind,
          .restless_period = running.restlessness().period(io::Loop::now()),
          .sha256 = running.module().digest().to_hex(),
          .resolved = std::move(outline.resolved),
          .resident_bytes = running.resident_bytes(),
          .disk_bytes = running.disk_bytes(),
          .start_count = running.life().start_count(),
          .figures = running.ledger().figures(),
          .expected_wake = running.expected_wake()};
}

modules::Source source_of(const Operator& spec) {
  return {.reference = spec.module, .sha256 = spec.sha256, .insecure = spec.insecure};
}

}  // namespace

OperatorController::OperatorController(Parts parts)
    : parts_(std::move(parts)),
      platform_(parts_.platform),
      log_(platform_.log.named("operators")),
      fleet_({.loop = platform_.loop,
              .engine = parts_.engine,
              .pressure = parts_.pressure,
              .guests = parts_.guests,
              .snapshots = parts_.snapshots,
              .gateway = parts_.gateway,
              .outbound = parts_.outbound,
              .metrics = platform_.metrics,
              .output = parts_.output,
              .recorder = parts_.recorder,
              .may_record_bodies =
                  [this](const std::string& namespace_name) {
                    return !record_problem(namespace_name, Recording::Bodies);
                  },
              .read_inputs =
                  [this](const Operator& spec, std::stop_token stop) {
                    return read_guest_inputs(platform_.client, spec, std::move(stop));
                  },
              .log = log_,
              .memory_budget_bytes = parts_.memory_budget_bytes,
              .answers = parts_.answers},
             {.on_change = [this](const RunningOperator& changed) { on_change(changed); },
              .on_failure = [this](const RunningOperator& failed,
                                   const Error& error) { on_failure(failed, error); },
              .on_bound = [this](const RunningOperator& refused,
                                 const std::string& message) { on_bound(refused, message); }}),
      taken_over_(platform_.metrics.counter(
          "hangar_operators_taken_over_total",
          "operators of the host that this process has replaced in place, by result",
          {{"result", "taken_over"}})),
      started_anew_(platform_.metrics.counter(
          "hangar_operators_taken_over_total",
          "operators of the host that this process has replaced in place, by result",
          {{"result", "started_anew"}})),
      webhooks_(platform_, parts_.webhooks,
                [this](const kube::ObjectKey& key) { operators_.enqueue(key); }),
      reviews_(
          platform_.metrics, fleet_, webhooks_,
          {.may_answer_later = [this](const kube::ObjectKey& key) { return may_answer_later(key); },
           .are_webhooks_read =
               [this](const kube::ObjectKey& key) { return are_webhooks_read(key); }}),
      config_maps_(platform_.cache, {},
                   {.on_object =
                        [this](const reconcile::SingleObject&, const kube::Delta* delta,
                               const std::vector<kube::ObjectKey>& holders) {
                          // Without the right to watch, the periodic check has to find the change.
                          if (delta == nullptr) return;
                          for (const kube::ObjectKey& key : holders)
                            on_module_changed(key);
                        }}),
      operators_(platform_,
                 {.kind = operator_resource(),
                  .name = "operator",
                  .field_manager = std::string(kFieldManager),
                  .log = log_,
                  .concurrency = 4,
                  .has_stalled = true,
                  .reconcile =
                      [this](kube::ObjectPtr object, std::stop_token stop) {
                        return reconcile(std::move(object), std::move(stop));
                      },
                  .forget = [this](kube::ObjectKey key) { return forget(std::move(key)); },
                  .on_change = [this](const kube::Delta& delta) { on_operator(delta); },
                  .on_synced = [this] { on_synced(); }}) {
  for (CarriedOperator& one : parts_.carried.operators) {
    kube::ObjectKey key = one.key;
    carried_.emplace(std::move(key), std::move(one));
  }
  for (LeftOperator& one : parts_.carried.left)
    left_.emplace(std::move(one.key), std::move(one.reason));
  parts_.carried = {};
  if (!parts_.webhooks.is_on()) return;
  parts_.webhooks.server().pass_at(std::string(kReviewsPath),
                                   [this](admission::Passed passed, std::stop_token stop) {
                                     return reviews_.answer(std::move(passed), std::move(stop));
                                   });
}

OperatorController::~OperatorController() = default;

void OperatorController::start() {
  parts_.policies.listen([this](const std::string& namespace_name) { look_again(namespace_name); });
  if (platform_.waits != nullptr) {
    constexpr std::string_view kPrefix = RunningOperator::kConsumerPrefix;
    platform_.waits->listen(std::string(kPrefix),
                            [this, kPrefix](const budget::Consumer& consumer) {
                              operators_.enqueue({.namespace_ = consumer.tenant.namespace_name(),
                                                  .name = consumer.name.substr(kPrefix.size())});
                            });
  }
  parts_.webhooks.on_address_change("operators", [this] { webhooks_.on_address_change(); });
  reviews_.lead();
  operators_.start();
}

void OperatorController::on_operator(const kube::Delta& delta) {
  const kube::ObjectKey& key = delta.object->key();
  if (delta.type == kube::Delta::Type::Modified || !ages_.knows(key.namespace_)) return;
  const std::optional<tenants::Bound> most = parts_.policies.rules_of(key.namespace_)->operators();
  if (!most) return;
  // The Operator that has crossed the bound.
  if (const auto moved = ages_.update(delta, most->value)) {
    operators_.enqueue({.namespace_ = key.namespace_, .name = *moved});
  }
}

void OperatorController::look_again(const std::string& namespace_name) {
  ages_.forget(namespace_name);
  // The list below is empty while the objects are first being told, some of which may have been
  // reconciled in vain already.
  for (kube::ObjectKey& key : std::exchange(waiting_for_policies_, {}))
    operators_.enqueue(std::move(key));
  for (const kube::ObjectPtr& object : operators_.list(namespace_name))
    operators_.enqueue(object->key());
}

std::map<std::string, OperatorController::Count> OperatorController::counts() const {
  std::map<std::string, Count> counts;
  for (const kube::ObjectPtr& object : operators_.list()) {
    const kube::ObjectKey& key = object->key();
    Count& count = counts[key.namespace_];
    ++count.all;
    const RunningOperator* const running = fleet_.find(key);
    if (running == nullptr) continue;
    const Phase phase = running->life().phase();
    if (phase == Phase::Asleep) ++count.asleep;
    if (phase == Phase::Running) ++count.awake;
  }
  return counts;
}

// Drops the output and the guests of Operators that were deleted while no host was running.
void OperatorController::on_synced() {
  std::vector<kube::ObjectKey> keys;
  for (const kube::ObjectPtr& object : operators_.list())
    keys.push_back(object->key());
  std::vector<kube::ObjectKey> gone;
  for (const auto& [key, carried] : carried_)
    if (!operators_.newest(key)) gone.push_back(key);
  for (const kube::ObjectKey& key : gone)
    drop_carried(key);
  parts_.output.remove_others(std::move(keys));
}

void OperatorController::drop_carried(const kube::ObjectKey& key) {
  left_.erase(key);
  if (auto node = carried_.extract(key)) fleet_.discard(std::move(node.mapped()));
}

io::Task<CarriedFleet> OperatorController::carry(Duration within) {
  co_await stop_reconciling();
  CarriedFleet fleet = co_await fleet_.carry(within);
  for (auto& [key, carried] : carried_)
    fleet.operators.push_back(std::move(carried));
  for (const auto& [key, reason] : left_)
    fleet.left.push_back({.key = key, .reason = reason});
  carried_.clear();
  left_.clear();
  log_.info("operators for the next process",
            {{"asleep", fleet.operators.size()}, {"start_anew", fleet.left.size()}});
  for (const LeftOperator& left : fleet.left) {
    log_.warning(
        "an operator will start anew",
        {{"namespace", left.key.namespace_}, {"name", left.key.name}, {"error", left.reason}});
  }
  co_return fleet;
}

io::Task<void> OperatorController::stop() {
  co_await stop_reconciling();
  co_await fleet_.stop();
}

io::Task<void> OperatorController::stop_reconciling() {
  parts_.webhooks.on_address_change("operators", {});
  reviews_.leave();
  config_maps_.clear();
  co_await operators_.stop();
  webhooks_.clear();
}

bool OperatorController::may_answer_later(const kube::ObjectKey& key) const {
  if (!operators_.is_synced() || !parts_.policies.is_settled()) return true;
  // Some programs list objects before they register their webhooks.
  return fleet_.find(key) == nullptr ? operators_.newest(key) != nullptr : webhooks_.has_any(key);
}

bool OperatorController::are_webhooks_read(const kube::ObjectKey& key) const {
  if (!operators_.is_synced() || !parts_.policies.is_settled()) return false;
  if (!operators_.newest(key)) return true;
  const auto found = memory_.find(key);
  return found != memory_.end() && found->second.are_webhooks_read;
}

io::Task<void> OperatorController::forget(kube::ObjectKey key) {
  config_maps_.release(key);
  webhooks_.release(key);
  parts_.modules.supply().leave(key.to_string());
  drop_carried(key);
  co_await fleet_.remove(key);
  if (memory_.erase(key) > 0) parts_.output.remove(key);
}

io::Task<Result<Outcome>> OperatorController::reconcile(kube::ObjectPtr object,
                                                        std::stop_token stop) {
  // Until the policies are known, none is started: all are enqueued again then.
  if (!parts_.policies.is_settled()) {
    waiting_for_policies_.push_back(object->key());
    co_return Outcome{};
  }
  const json::Value manifest = object->to_value();
  Memory& memory = memory_[object->key()];
  const Result<> established = co_await establish(manifest, memory, stop);
  if (!established && established.error().kind() == ErrorKind::Cancelled) {
    co_return std::unexpected(established.error());
  }
  if (const Instant now = io::Loop::now(); established && memory.asking.is_quiet(now)) {
    co_return Outcome{.requeue_after = memory.asking.again_in(now)};
  }
  HANGAR_CO_TRY(co_await write_status(manifest, memory, established, stop));
  if (!established && established.error().reason() == reconcile::kNamespaceNotAllowed) {
    co_return Outcome{.requeue_after = reconcile::kNotAllowedRecheck};
  }
  // No retry is needed: a change of the policies, or of older Operators, enqueues it again.
  if (!established && established.error().reason() == tenants::kRefusedByPolicy) {
    co_return Outcome{};
  }
  if (!established) co_return std::unexpected(established.error());
  const Instant now = io::Loop::now();
  Duration again = memory.asking.again_in(now);
  if (memory.figures_due) again = std::min<Duration>(again, *memory.figures_due - now);
  // A timer that has stopped causes no turn that would write the status.
  if (const RunningOperator* const running = fleet_.find(object->key());
      running != nullptr && running->restlessness().period(now)) {
    again = std::min<Duration>(
        again, running->restlessness().ends_at() - now + std::chrono::milliseconds(1));
  }
  co_return Outcome{.requeue_after =
                        std::min(again, webhooks_.again_in(object->key(), now).value_or(again))};
}

// An error concerns the spec or the rights; problems with the module are in memory.asking.
io::Task<Result<>> OperatorController::establish(const json::Value& manifest, Memory& memory,
                                                 std::stop_token stop) {
  const kube::ObjectKey key = kube::key_of(manifest);
  const std::shared_ptr<const tenants::Rules> rules = parts_.policies.rules_of(key.namespace_);
  Result<Operator> parsed = parse_operator(manifest);
  if (!parsed) {
    co_await end_refused(key, {}, *rules, memory);
    leave_module(key, memory);
    co_return std::unexpected(std::move(parsed).error());
  }
  Operator spec = *std::move(parsed);
  HANGAR_ASSERT(!spec.service_account.empty(),
                "only operators of a directory act as the host itself");
  HANGAR_CO_TRY(co_await check_policies(spec, *rules, memory));
  if (memory.uid != spec.uid || memory.generation != spec.generation) {
    co_await end_refused(key, source_of(spec), *rules, memory);
  }
  HANGAR_CO_TRY(co_await check_rights(spec, memory, stop));
  co_await webhooks_.keep(spec, std::move(stop));
  const std::optional<Error> webhook_problem = webhooks_.problem(spec.key);
  memory.are_webhooks_read = !webhook_problem || webhook_problem->kind() != ErrorKind::Unavailable;
  tell_webhook_problem(spec.key, memory);
  tell_record_problem(spec, memory);
  follow_module(spec);
  std::optional<OperatorModule> module = ask_for_module(spec, *rules, memory);
  if (!module || (memory.uid == spec.uid && memory.generation == spec.generation &&
                  memory.module == module->code->digest())) {
    co_return Result<>();
  }
  if (memory.uid != spec.uid) {
    co_await fleet_.remove(spec.key);  // Another object of the same name.
    parts_.output.begin({.key = spec.key, .uid = spec.uid});
  }
  memory.uid = spec.uid;
  memory.generation = spec.generation;
  memory.module = module->code->digest();
  memory.has_sleep_problem = false;
  co_await begin(std::move(spec), *std::move(module));
  co_return Result<>();
}

io::Task<void> OperatorController::begin(Operator spec, OperatorModule module) {
  const kube::ObjectKey key = spec.key;
  auto carried = carried_.extract(key);
  const auto left = left_.extract(key);
  std::optional<std::string> why = left ? std::optional(left.mapped()) : std::nullopt;
  if (carried)
    why = misfit(carried.mapped(), spec, module.code->digest(), module.code->image_number());
  if (carried && !why) {
    const Result<> taken =
        co_await fleet_.take_over(std::move(spec), std::move(module), std::move(carried.mapped()));
    if (taken) co_return taken_over_.add();
    co_return tell_started_anew(key, taken.error().message());
  }
  if (carried) fleet_.discard(std::move(carried.mapped()));
  if (why) tell_started_anew(key, *why);
  co_await fleet_.run(std::move(spec), std::move(module));
}

void OperatorController::tell_started_anew(const kube::ObjectKey& key, const std::string& why) {
  started_anew_.add();
  log_.warning("an operator of the previous process is restarted",
               {{"namespace", key.namespace_}, {"name", key.name}, {"error", why}});
  operators_.record(key, {.type = reconcile::EventType::Normal,
                          .reason = "StartedAnew",
                          .message = "hangar was replaced, and the guest starts anew: " + why});
}

void OperatorController::leave_module(const kube::ObjectKey& key, Memory& memory) {
  parts_.modules.supply().leave(key.to_string());
  memory.asking = {};
}

// Also leaves its ConfigMap and module, which it may no longer use.
io::Task<void> OperatorController::end(const Operator& spec, Memory& memory) {
  config_maps_.release(spec.key);
  webhooks_.release(spec.key);
  leave_module(spec.key, memory);
  drop_carried(spec.key);
  co_await fleet_.remove(spec.key);
  memory.module = {};
  memory.generation = 0;
}

io::Task<Result<>> OperatorController::check_policies(const Operator& spec,
                                                      const tenants::Rules& rules, Memory& memory) {
  Result<> may = rules.check_service_account(spec.service_account);
  if (may) may = rules.check_module(source_of(spec));
  if (const std::optional<tenants::Bound> most = rules.operators(); may && most) {
    may = rules.check_operator_count(ages_.position(
        spec.key, most->value, [this](std::string_view in) { return operators_.list(in); }));
  }
  if (!may) co_await end(spec, memory);
  co_return may;
}

io::Task<void> OperatorController::end_refused(kube::ObjectKey key, modules::Source named,
                                               const tenants::Rules& rules, Memory& memory) {
  const RunningOperator* const running = fleet_.find(key);
  if (running == nullptr) co_return;
  const PackedOperator::Parts earlier = running->outline();
  Result<> may = rules.check_service_account(earlier.spec.service_account);
  if (may) may = rules.check_loaded_module(earlier.resolved, named);
  if (may) co_return;
  operators_.record(key, {.type = reconcile::EventType::Warning,
                          .reason = std::string(tenants::kRefusedByPolicy),
                          .message = fmt::format("the guest of the previous spec is stopped: {}",
                                                 may.error().message())});
  co_await fleet_.remove(key);
  memory.module = {};
  memory.generation = 0;
}

io::Task<Result<>> OperatorController::check_rights(const Operator& spec, Memory& memory,
                                                    std::stop_token stop) {
  const Result<> may =
      co_await platform_.acting.check(spec.key.namespace_, spec.service_account, std::move(stop));
  if (!may && may.error().reason() == reconcile::kNamespaceNotAllowed) {
    co_await end(spec, memory);
  }
  co_return may;
}

// Nothing if the module is not there yet, or if the running guest already has it.
std::optional<OperatorModule> OperatorController::ask_for_module(const Operator& spec,
                                                                 const tenants::Rules& rules,
                                                                 Memory& memory) {
  modules::Requester requester = rules.requester(spec.key.namespace_);
  // The text differs when the policies let it reach other addresses.
  const std::string definition =
      fmt::format("{}/{}/{}", spec.uid, spec.generation, requester.public_because());
  const std::optional<modules::Supplied> supplied = memory.asking.ask(
      parts_.modules.supply(), {.requester = std::move(requester), .module = source_of(spec)},
      definition, {.name = spec.key.to_string(), .changed = [this, key = spec.key] {
                     operators_.enqueue(key);
                   }});
  if (!supplied) return std::nullopt;
  return OperatorModules::module_of(*supplied);
}

// Also called when the ConfigMap is first seen: an earlier fetch may have read an older one.
void OperatorController::on_module_changed(const kube::ObjectKey& key) {
  if (const auto found = memory_.find(key); found != memory_.end()) found->second.asking.forget();
  operators_.enqueue(key);
}

void OperatorController::follow_module(const Operator& spec) {
  const Result<modules::Reference> reference = modules::Reference::parse(spec.module);
  const auto* const source =
      reference ? std::get_if<modules::ConfigMapSource>(&reference->source()) : nullptr;
  config_maps_.begin(spec.key);
  if (source != nullptr) {
    // Watches only the metadata: a module is about a megabyte, which the fetcher reads when needed.
    config_maps_.hold(spec.key,
                      {.resource = kube::config_map_resource(),
                       .key = {.namespace_ = source->namespace_name, .name = source->name}});
  }
  config_maps_.end(spec.key);
}

io::Task<Result<>> OperatorController::write_status(const json::Value& manifest, Memory& memory,
                                                    const Result<>& established,
                                                    std::stop_token stop) {
  const std::optional<Error> error =
      established ? memory.asking.error() : std::optional(established.error());
  const std::string problem = error ? error->message() : "";
  std::optional<reconcile::EventText> event;
  if (error) {
    event = {
        .type = reconcile::EventType::Warning, .reason = "OperatorStalled", .message = problem};
  }
  operators_.announce(manifest, problem, std::move(event));

  const kube::ObjectKey key = kube::key_of(manifest);
  OperatorState state{.problem = error,
                      .awaited = memory.asking.waits_for(),
                      .pod = parts_.pod,
                      .webhook_problem = webhooks_.problem(key),
                      .record_problem = record_problem(key.namespace_, recording_of(manifest))};
  if (const RunningOperator* const running = fleet_.find(key)) {
    state.running = shown(*running);
    memory.written = state.running->phase;
    if (platform_.waits != nullptr) {
      state.memory_wait = platform_.waits->told(running->consumer());
      state.processor_wait = platform_.waits->told_brake(running->consumer());
    }
  }
  const json::Value before = reconcile::status_of(manifest);
  json::Value status =
      operator_status(manifest, state, {.at = io::Loop::now(), .wall = io::Loop::wall_now()});
  memory.figures_due.reset();
  if (json::equal(status, before)) co_return Result<>();
  const Instant due = memory.written_at + kFiguresInterval;
  if (io::Loop::now() < due && differ_in_figures_only(status, before)) {
    memory.figures_due = due;
    co_return Result<>();
  }
  memory.written_at = io::Loop::now();
  HANGAR_CO_TRY(co_await operators_.write_status(manifest, std::move(status),
                                                 reconcile::StatusOf::Spec, std::move(stop)));
  co_return Result<>();
}

Duration OperatorController::status_interval() const {
  const std::chrono::duration<double> all(static_cast<double>(fleet_.size()) /
                                          kStatusWritesPerSecond);
  return std::max<Duration>(kStatusIntervalMin, std::chrono::duration_cast<Duration>(all));
}

// The status reports sleeping and waking at intervals, everything else at once.
void OperatorController::on_change(const RunningOperator& changed) {
  const auto found = memory_.find(changed.key());
  if (found == memory_.end()) return;
  const auto is_at_work = [](Phase phase) {
    return phase == Phase::Running || phase == Phase::Asleep;
  };
  const Phase phase = changed.life().phase();
  const bool is_news =
      tell_sleep_problem(changed, found->second) ||
      (found->second.written != phase &&
       !(found->second.written && is_at_work(*found->second.written) && is_at_work(phase)));
  if (is_news) {
    operators_.enqueue(changed.key());
  } else {
    operators_.enqueue_after(changed.key(), status_interval());
  }
}

bool OperatorController::tell_sleep_problem(const RunningOperator& changed, Memory& memory) {
  const std::string& problem = changed.troubles().sleep_problem;
  if (memory.has_sleep_problem == !problem.empty()) return false;
  memory.has_sleep_problem = !problem.empty();
  if (problem.empty()) {
    operators_.record(changed.key(), {.type = reconcile::EventType::Normal,
                                      .reason = "SleepsAgain",
                                      .message = "the guest could leave memory again"});
  } else {
    operators_.record(
        changed.key(),
        {.type = reconcile::EventType::Warning, .reason = "StaysResident", .message = problem});
  }
  return true;
}

void OperatorController::tell_webhook_problem(const kube::ObjectKey& key, Memory& memory) {
  const std::optional<Error> problem = webhooks_.problem(key);
  const std::string text = problem ? problem->message() : "";
  if (text == memory.webhook_problem) return;
  memory.webhook_problem = text;
  if (text.empty()) {
    operators_.record(key, {.type = reconcile::EventType::Normal,
                            .reason = "WebhooksReady",
                            .message = "the API server sends the operator its reviews"});
  } else {
    operators_.record(
        key,
        {.type = reconcile::EventType::Warning, .reason = "WebhooksNotReady", .message = text});
  }
}

std::optional<Error> OperatorController::record_problem(const std::string& namespace_name,
                                                        Recording asked) const {
  if (asked != Recording::Bodies) return std::nullopt;
  if (parts_.recorder == nullptr) {
    return Error(ErrorKind::Unavailable, "this host records nothing (recorder-bytes is 0)");
  }
  Result<> may = parts_.policies.rules_of(namespace_name)->check_recorded_bodies();
  if (may) return std::nullopt;
  return std::move(may).error();
}

// The operator works in any case.
void OperatorController::tell_record_problem(const Operator& spec, Memory& memory) {
  const std::optional<Error> problem = record_problem(spec.key.namespace_, spec.record);
  const std::string text = problem ? problem->message() : "";
  if (std::exchange(memory.record_problem, text) == text || text.empty()) return;
  operators_.record(
      spec.key,
      {.type = reconcile::EventType::Warning, .reason = "BodiesNotRecorded", .message = text});
}

void OperatorController::on_failure(const RunningOperator& failed, const Error& error) {
  log_.warning("a guest failed", {{"namespace", failed.key().namespace_},
                                  {"name", failed.key().name},
                                  {"error", error.message()}});
  operators_.record(
      failed.key(),
      {.type = reconcile::EventType::Warning, .reason = "GuestFailed", .message = error.message()});
}

void OperatorController::on_bound(const RunningOperator& refused, const std::string& message) {
  operators_.record(
      refused.key(),
      {.type = reconcile::EventType::Warning, .reason = "RequestRefused", .message = message});
}

}  // namespace hangar::operators
