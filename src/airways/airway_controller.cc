#include "airways/airway_controller.h"

#include "admission/webhooks.h"
#include "airways/acting.h"
#include "airways/airway.h"
#include "airways/airway_instances.h"
#include "airways/child_protection.h"
#include "airways/conditions.h"
#include "airways/conversion.h"
#include "airways/crd_template.h"
#include "airways/flight.h"
#include "airways/flight_modules.h"
#include "airways/flight_status.h"
#include "airways/identity.h"
#include "airways/instance_controller.h"
#include "airways/ownership.h"
#include "airways/pinned_module.h"
#include "airways/plan.h"
#include "airways/platform.h"
#include "airways/storage_migration.h"
#include "archive/module_archive.h"
#include "base/result.h"
#include "base/time.h"
#include "io/loop.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/cache/cache.h"
#include "kube/cache/store.h"
#include "kube/client.h"
#include "kube/object.h"
#include "modules/pin.h"
#include "modules/requester.h"
#include "modules/supply.h"
#include "reconcile/controller.h"
#include "reconcile/event_log.h"
#include "reconcile/event_recorder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <expected>
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

// A reconcile of an Airway mostly waits for the API server. Several run at a time, so that one does
// not hold up all others.
constexpr std::size_t kConcurrency = 4;
// How soon a deletion that waits for the API server is checked again if no event comes first.
constexpr std::chrono::seconds kDeletionRecheck{5};

// The condition that says whether all instances are stored in the template's storage version.
// Absent while there has been only one.
constexpr std::string_view kStorageMigrated = "StorageMigrated";
Verdict launched() {
  return {.status = ConditionStatus::True,
          .reason = std::string(kReasonReady),
          .message = "Flight-Controller launched"};
}

Verdict initializing(std::string message) {
  return {.reason = std::string(kReasonInProgress), .message = std::move(message)};
}

// The listener's name at the supply.
std::string listener_of(const std::string& airway, const ModuleRole& role) {
  return fmt::format("{}/{}", airway, role.name);
}

void remove_module(const ModuleRole& role, json::Value& status) {
  status.as_object().erase(role.name);
  json::Value* const conditions = json::find(status, {"conditions"});
  if (conditions == nullptr || !conditions->is_array()) return;
  json::Array& all = conditions->get_array();
  const auto [first, last] = std::ranges::remove_if(all, [&role](const json::Value& condition) {
    return json::string_at(condition, {"type"}) == role.is_up_to_date;
  });
  all.erase(first, last);
}

// The kind of the instances in its storage version, as a live CRD serves it; nothing before the CRD
// is established.
std::optional<kube::Resource> served_by(const json::Value& crd) {
  if (!meets_condition(crd, "Established")) return std::nullopt;
  return stored_kind(crd);
}

}  // namespace

struct AirwayController::Work {
  kube::ObjectKey key;
  Memory& memory;
  std::stop_token stop;
  json::Value value;
  PinnedModule* missing = nullptr;  // The module that keeps the Airway from being Ready.
  bool drops_converter = false;

  // When to check the modules again.
  [[nodiscard]] Duration again_in(Instant now) const {
    return std::min(memory.flight.asking.again_in(now), memory.converter.asking.again_in(now));
  }
};

AirwayController::AirwayController(const Platform& platform)
    : platform_(platform),
      log_(platform.shared.log.named("airways")),
      copies_({.platform = platform.shared,
               .store = platform.store,
               .format = airway_copies(),
               .log = log_,
               .name = "airway-modules",
               .kept_in = platform.namespace_,
               .is_synced = [this] { return is_synced(); },
               .is_needed =
                   [this](const archive::ArchivedModule& copy) { return is_pinned(copy.sha256); }}),
      crds_(platform.shared.cache, {.detail = kube::Detail::Whole},
            {.on_object =
                 [this](const reconcile::SingleObject&, const kube::Delta* delta,
                        const std::vector<kube::ObjectKey>& airways) {
                   if (delta != nullptr) on_crd(*delta, airways);
                 }}),
      shell_(platform.shared,
             {.kind = airway_resource(),
              .name = "airway",
              .field_manager = std::string(kControllerFieldManager),
              .log = log_,
              .concurrency = kConcurrency,
              .finalizer = std::string(kAirwayFinalizer),
              .reconcile =
                  [this](kube::ObjectPtr airway, std::stop_token stop) {
                    return reconcile(std::move(airway), std::move(stop));
                  },
              .finalize =
                  [this](kube::ObjectPtr airway, std::stop_token stop) {
                    return finalize(std::move(airway), std::move(stop));
                  },
              .forget = [this](kube::ObjectKey key) { return forget(std::move(key)); },
              .predicate = is_worth_a_run,
              .on_change = [this](const kube::Delta& delta) { tidy_after(delta); },
              .on_synced = [this] { on_synced(); }}) {}

AirwayController::~AirwayController() = default;

void AirwayController::start() {
  copies_.start();
  shell_.start();
}

// Removes copies and output of Airways that were deleted while no host ran.
void AirwayController::on_synced() {
  copies_.look_at_all();
  std::vector<std::string> names{flight_resource().qualified_plural(),
                                 cluster_flight_resource().qualified_plural()};
  for (const kube::ObjectPtr& airway : shell_.list())
    names.push_back(airway->key().name);
  platform_.output.remove_other_resources(std::move(names));
}

// A change of an annotation does not change the generation.
bool AirwayController::is_worth_a_run(const kube::Delta& delta) {
  return reconcile::generation_changed(delta) ||
         kube::annotation_of(delta.object->to_value(), kServiceAccountAnnotation) !=
             kube::annotation_of(delta.previous->to_value(), kServiceAccountAnnotation);
}

io::Task<void> AirwayController::stop() {
  co_await shell_.stop();
  co_await copies_.stop();
  crds_.clear();
  for (const auto& [key, memory] : airways_) {
    co_await end(*memory);
  }
}

std::vector<kube::Resource> AirwayController::instance_resources() const {
  std::vector<kube::Resource> resources;
  for (const auto& [key, memory] : airways_) {
    if (memory->instances) resources.push_back(memory->instances->kind());
  }
  return resources;
}

std::map<std::string, std::uint64_t> AirwayController::instance_counts() const {
  std::map<std::string, std::uint64_t> counts;
  for (const auto& [key, memory] : airways_) {
    if (memory->instances) std::as_const(*memory->instances).controller().count_in(counts);
  }
  return counts;
}

InstanceController* AirwayController::instances_of(const kube::GroupKind& kind) const {
  const auto found = by_kind_.find(kind);
  return found == by_kind_.end() ? nullptr : found->second;
}

io::Task<void> AirwayController::stop_instances(Memory& memory) {
  if (!memory.instances) co_return;
  by_kind_.erase(memory.instances->kind().gvk().group_kind());
  co_await memory.instances->stop();
  memory.instances.reset();
}

io::Task<void> AirwayController::end(Memory& memory) {
  if (memory.migration) co_await memory.migration->stop();
  co_await stop_instances(memory);
}

void AirwayController::on_crd(const kube::Delta& delta,
                              const std::vector<kube::ObjectKey>& airways) {
  const std::string_view name = delta.object->key().name;
  // Discovery has cached earlier answers, and a watch of the kind may have failed meanwhile.
  const std::size_t dot = name.find('.');
  if (dot != std::string_view::npos) {
    platform_.shared.discovery.forget(name.substr(dot + 1));
    platform_.shared.cache.kick(name.substr(dot + 1));
  }
  for (const kube::ObjectKey& airway : airways)
    shell_.enqueue(airway);
}

io::Task<void> AirwayController::forget(kube::ObjectKey key) {
  leave_modules(key.name);
  const auto found = airways_.find(key);
  if (found == airways_.end()) co_return;
  co_await end(*found->second);
  airways_.erase(found);
  crds_.release(key);
}

void AirwayController::leave_modules(const std::string& airway) const {
  for (const ModuleRole& role : kModuleRoles)
    modules::PinnedAsking::leave(platform_.modules.supply(), listener_of(airway, role));
}

void AirwayController::on_webhook_address() {
  for (const kube::ObjectPtr& airway : shell_.list())
    shell_.enqueue(airway->key());
}

void AirwayController::on_verification_keys() {
  for (auto& [key, memory] : airways_) {
    for (const ModuleRole& role : kModuleRoles)
      memory->module(role).asking.forget();
    shell_.enqueue(key);
  }
}

// Begins once the Airway's CRD, which has its name, is known.
io::Task<Result<AirwayController::Work>> AirwayController::begin(kube::ObjectPtr airway,
                                                                 std::stop_token stop) {
  auto& memory = airways_[airway->key()];
  if (!memory) memory = std::make_unique<Memory>();
  Work work{.key = airway->key(),
            .memory = *memory,
            .stop = std::move(stop),
            .value = airway->to_value()};
  work.memory.crd =
      &crds_.hold(work.key, {.resource = crd_resource(), .key = {.name = work.key.name}});
  HANGAR_CO_TRY(co_await work.memory.crd->wait_synced(work.stop));
  co_return work;
}

io::Task<Result<Outcome>> AirwayController::finalize(kube::ObjectPtr airway, std::stop_token stop) {
  Work work = HANGAR_CO_TRY(co_await begin(std::move(airway), std::move(stop)));
  leave_modules(work.key.name);
  co_return co_await tear_down(work);
}

io::Task<Result<Outcome>> AirwayController::reconcile(kube::ObjectPtr airway,
                                                      std::stop_token stop) {
  Work work = HANGAR_CO_TRY(co_await begin(std::move(airway), std::move(stop)));
  Result<Verdict> verdict = co_await establish(work);
  if (!verdict && verdict.error().kind() == ErrorKind::Cancelled) {
    co_return std::unexpected(std::move(verdict).error());
  }
  const Instant now = io::Loop::now();
  // A module that arrives within a moment is not worth a status write that says it is awaited.
  if (verdict && work.missing != nullptr && work.missing->asking.is_quiet(now)) {
    co_return Outcome{.requeue_after = work.again_in(now)};
  }
  HANGAR_CO_TRY(co_await write_status(work, verdict ? *verdict : verdict_of(verdict.error())));
  if (!verdict && work.missing == nullptr) co_return std::unexpected(std::move(verdict).error());
  co_return Outcome{.requeue_after = work.again_in(now)};
}

io::Task<Result<Verdict>> AirwayController::establish(Work& work) {
  // The releases of deleted instances are removed even if the Airway is invalid.
  if (const kube::ObjectPtr crd = work.memory.crd->get({.name = work.key.name})) {
    if (const auto kind = served_by(crd->to_value())) co_await run_instances(work, *kind);
  }
  HANGAR_CO_TRY(acting_of(work.value, platform_.acting_by_default));
  Airway airway = HANGAR_CO_TRY(parse_airway(work.value));
  if (work.memory.uid != airway.uid) {
    work.memory.uid = airway.uid;
    for (const ModuleRole& role : kModuleRoles) {
      work.memory.module(role).pin = pin_in(work.value, role);
      work.memory.module(role).facts.reset();
    }
  }
  if (const std::vector<std::string> reasons = unsupported_of(airway, platform_.means);
      !reasons.empty()) {
    for (const ModuleRole& role : kModuleRoles)
      work.memory.module(role).asking = {};
    co_return Verdict{.reason = std::string(kReasonUnsupported),
                      .message = fmt::format("{}", fmt::join(reasons, "; "))};
  }
  if (airway.terms.mode == Mode::Static) {
    HANGAR_CO_TRY(platform_.check_protection(kAirwayChildren));
  }
  std::optional<FlightModule> module =
      HANGAR_CO_TRY(co_await ask_for_module(work, airway, kFlight));
  if (!module) co_return initializing("the flight: " + work.memory.flight.asking.waits_for());
  std::optional<admission::Address> converter;
  if (has_conversion(airway)) {
    converter = HANGAR_CO_TRY(co_await ask_for_converter(work, airway));
    if (!converter && work.missing != nullptr) {
      co_return initializing("the converter: " + work.missing->asking.waits_for());
    }
    if (!converter) co_return initializing("waiting for the certificate of the webhooks");
  } else {
    drop_converter(work);
  }

  if (!HANGAR_CO_TRY(co_await apply_crd(work, airway, std::move(converter)))) {
    co_return initializing("waiting for the custom resource definition to be established");
  }
  const bool is_bound = work.memory.bound && work.memory.bound->module.sha256 == module->sha256 &&
                        work.memory.bound->airway->generation == airway.generation &&
                        work.memory.bound->airway->uid == airway.uid;
  if (!is_bound) {
    work.memory.bound = Binding{.terms = airway.terms,
                                .module = *std::move(module),
                                .is_first_use = work.memory.flight.is_first_use(),
                                .airway = std::make_shared<const Airway>(std::move(airway))};
    work.memory.instances->bind(std::make_shared<const Binding>(*work.memory.bound));
  }
  co_return launched();
}

io::Task<Result<std::optional<FlightModule>>> AirwayController::ask_for_module(
    Work& work, const Airway& airway, const ModuleRole& role) {
  PinnedModule& one = work.memory.module(role);
  work.missing = &one;
  const modules::Source source =
      role.name == kFlight.name ? airway.terms.flight : converter_of(airway);
  const std::optional<modules::Pin> before = one.pin;
  Result<std::optional<FlightModule>> module =
      one.ask(platform_.modules,
              {.role = role,
               .source = source,
               // Airways are cluster-scoped: a user who may create one can read every namespace
               // through it anyway.
               .requester = modules::Requester::cluster_wide(),
               .definition = fmt::format("{}/{}", airway.uid, airway.generation),
               .listener = {.name = listener_of(work.key.name, role),
                            .changed = [this, key = work.key] { shell_.enqueue(key); }}});
  if (before && (!one.pin || one.pin->sha256 != before->sha256)) {
    look_at_copy(before->sha256);
  }
  if (!module || !*module) co_return module;
  work.missing = nullptr;
  const std::optional<reconcile::EventText> not_kept =
      HANGAR_CO_TRY(co_await one.keep_copy(copies_, work.value, role, work.stop));
  if (not_kept) platform_.shared.events.record(work.value, *not_kept);
  one.describe(source);
  co_return module;
}

io::Task<Result<std::optional<admission::Address>>> AirwayController::ask_for_converter(
    Work& work, const Airway& airway) {
  const std::optional<FlightModule> module =
      HANGAR_CO_TRY(co_await ask_for_module(work, airway, kConverter));
  if (!module) co_return std::nullopt;
  const Result<> fits = co_await platform_.modules.check_converter(*module, work.stop);
  if (!fits) co_return std::unexpected(Error(fits.error()).in("spec.wasmUrls.converter"));
  co_return platform_.webhook_address(conversion_path(airway));
}

void AirwayController::drop_converter(Work& work) {
  modules::PinnedAsking::leave(platform_.modules.supply(), listener_of(work.key.name, kConverter));
  if (const std::optional<modules::Pin>& pin = work.memory.converter.pin) {
    look_at_copy(pin->sha256);
  }
  work.memory.converter = {};
  work.drops_converter = true;
}

bool AirwayController::is_pinned(const std::string& sha256) const {
  return std::ranges::any_of(shell_.list(), [&](const kube::ObjectPtr& airway) {
    // The memory is newer than the status.
    const auto found = airways_.find(airway->key());
    const bool is_remembered = found != airways_.end() && found->second->uid == airway->uid();
    const json::Value value = is_remembered ? json::Value() : airway->to_value();
    return std::ranges::any_of(kModuleRoles, [&](const ModuleRole& role) {
      const std::optional<modules::Pin> pin =
          is_remembered ? found->second->module(role).pin : pin_in(value, role);
      return pin && pin->sha256 == sha256;
    });
  });
}

void AirwayController::look_at_copy(std::string sha256) {
  copies_.look_at(copies_.of({}, std::move(sha256)));
}

void AirwayController::tidy_after(const kube::Delta& delta) {
  if (delta.type != kube::Delta::Type::Deleted) return;
  const json::Value airway = delta.object->to_value();
  for (const ModuleRole& role : kModuleRoles) {
    if (std::optional<modules::Pin> pin = pin_in(airway, role)) {
      look_at_copy(std::move(pin->sha256));
    }
  }
}

// False until the API server has established the CRD; its event queues the Airway again.
io::Task<Result<bool>> AirwayController::apply_crd(Work& work, const Airway& airway,
                                                   std::optional<admission::Address> converter) {
  const json::Value desired = HANGAR_CO_TRY(crd_of(airway, std::move(converter)));
  const kube::ObjectPtr live = work.memory.crd->get({.name = work.key.name});
  bool is_ours = false;
  if (live) {
    const json::Value value = live->to_value();
    HANGAR_CO_TRY(may_take_over_crd(value, airway));
    is_ours = is_owned_by(value, airway.uid);
    if (live->is_being_deleted()) {
      co_return fail(ErrorKind::Unavailable,
                     "the custom resource definition of this name is still being deleted");
    }
  }
  json::Value crd = live ? live->to_value() : json::Value();
  const Applied* const last = work.memory.applied ? &*work.memory.applied : nullptr;
  if (apply_need(desired, live.get(), last) != ApplyNeed::None) {
    Result<json::Value> answer = co_await platform_.shared.client.apply(
        crd_resource(), desired,
        // Our own CRD is restored after any edit. Another one is never taken by force.
        {.field_manager = std::string(kFieldManager), .force = is_ours}, work.stop);
    if (!answer) {
      co_return std::unexpected(std::move(answer).error().in("invalid crd template"));
    }
    work.memory.applied = applied_of(desired, *answer);
    crd = *std::move(answer);
  }
  const auto kind = served_by(crd);
  if (!kind) co_return false;
  co_await run_instances(work, *kind);
  if (has_other_stored_versions(crd) || left_migration_untold(work)) {
    co_await migrate_instances(work, *kind);
  }
  co_return true;
}

// True when an earlier host ended between the last instance that it rewrote and the status that
// would have said so. A migration that finds nothing to do says it.
bool AirwayController::left_migration_untold(const Work& work) {
  if (work.memory.migration) return false;
  const json::Value status = reconcile::status_of(work.value);
  const json::Value* const condition = find_condition(status, kStorageMigrated);
  return condition != nullptr && json::string_at(*condition, {"status"}) != "True";
}

io::Task<void> AirwayController::migrate_instances(Work& work, const kube::Resource& kind) {
  if (!work.memory.migration) {
    work.memory.migration = std::make_unique<StorageMigration>(
        StorageMigration::Parts{.loop = platform_.shared.loop,
                                .client = platform_.shared.client,
                                .log = log_,
                                .changed = [this, key = work.key] { shell_.enqueue(key); }});
  }
  co_await work.memory.migration->begin(work.key.name, kind);
}

io::Task<void> AirwayController::run_instances(Work& work, const kube::Resource& kind) {
  auto& instances = work.memory.instances;
  const Result<Acting> acting = acting_of(work.value, platform_.acting_by_default);
  if (instances && instances->kind() == kind) {
    instances->act_as(acting);
    instances->prune_as(prune_of(work.value));
    co_return;
  }
  co_await stop_instances(work.memory);
  instances = std::make_unique<AirwayInstances>(platform_, work.key.name, kind);
  by_kind_[kind.gvk().group_kind()] = &instances->controller();
  work.memory.bound.reset();
  instances->act_as(acting);
  instances->prune_as(prune_of(work.value));
  instances->start();
}

io::Task<Result<Outcome>> AirwayController::tear_down(Work& work) {
  if (shell_.announced(work.key) != kReasonTerminating) {
    std::ignore = co_await write_status(work, {.reason = std::string(kReasonTerminating),
                                               .message = "removing the kind and its instances"});
  }
  const kube::ObjectPtr crd = work.memory.crd->get({.name = work.key.name});
  if (crd && is_owned_by(crd->to_value(), json::string_at(work.value, {"metadata", "uid"}))) {
    // Instances have our finalizer, so a controller has to remove their releases.
    if (const auto kind = served_by(crd->to_value())) co_await run_instances(work, *kind);
    // Once: the cache may still show the CRD from before the request.
    if (!crd->is_being_deleted() && work.memory.removed_crd_uid != crd->uid()) {
      const Result<json::Value> removed = co_await platform_.shared.client.remove(
          crd_resource(), {.name = work.key.name},
          {.propagation = kube::Propagation::Foreground, .uid = std::string(crd->uid())},
          work.stop);
      if (!removed && removed.error().kind() != ErrorKind::NotFound) {
        co_return std::unexpected(Error(removed.error()).in("delete the kind"));
      }
      work.memory.removed_crd_uid = crd->uid();
    }
    co_return Outcome{.requeue_after = kDeletionRecheck};
  }
  co_return Outcome{};
}

// Puts the module into the status; records an Event when its source has changed.
void AirwayController::put_module(const Work& work, const ModuleRole& role,
                                  json::Value& status) const {
  const std::optional<ModuleFacts>& facts = work.memory.module(role).facts;
  if (!facts) return;
  const std::optional<reconcile::EventText> event = airways::put_module(
      status, role, *facts, json::int_at(work.value, {"metadata", "generation"}),
      io::Loop::wall_now());
  if (event) platform_.shared.events.record(work.value, *event);
}

void AirwayController::put_migration(const Work& work, json::Value& status) const {
  if (!work.memory.migration) return;
  const StorageMigration::Progress progress = work.memory.migration->progress();
  Condition condition{.type = std::string(kStorageMigrated),
                      .observed_generation = json::int_at(work.value, {"metadata", "generation"})};
  if (!work.memory.migration->is_under_way()) {
    condition.status = ConditionStatus::True;
    condition.reason = "Migrated";
    condition.message = fmt::format("all instances are stored in version {}", progress.version);
  } else {
    condition.reason = progress.error.empty() ? kReasonInProgress : kReasonError;
    condition.message = fmt::format("{} of {} instances were rewritten in version {}{}{}",
                                    progress.done, progress.count, progress.version,
                                    progress.error.empty() ? "" : ": ", progress.error);
  }
  set_condition(status, condition, io::Loop::wall_now());
}

io::Task<Result<>> AirwayController::write_status(Work& work, const Verdict& verdict) {
  std::optional<reconcile::EventText> event;
  if (verdict.reason == kReasonError || verdict.reason == kReasonUnsupported ||
      verdict.reason == kReasonModuleUnavailable) {
    event = {.type = reconcile::EventType::Warning,
             .reason = "AirwayFailed",
             .message = verdict.message};
  }
  shell_.announce(work.value, verdict.reason, std::move(event));
  const json::Value before = reconcile::status_of(work.value);
  json::Value status = before;
  const Condition condition{
      .status = verdict.status,
      .reason = verdict.reason,
      .message = verdict.message,
      .observed_generation = json::int_at(work.value, {"metadata", "generation"})};
  set_condition(status, condition, io::Loop::wall_now());
  for (const ModuleRole& role : kModuleRoles)
    put_module(work, role, status);
  if (work.drops_converter) remove_module(kConverter, status);
  put_migration(work, status);
  if (!platform_.pod.empty()) status.as_object()["pod"] = platform_.pod;
  if (json::equal(status, before)) co_return Result<>();
  work.value = HANGAR_CO_TRY(co_await shell_.write_status(work.value, std::move(status),
                                                          reconcile::StatusOf::Spec, work.stop));
  co_return Result<>();
}

}  // namespace hangar::airways
