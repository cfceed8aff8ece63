#include "airways/flight_controller.h"

#include "airways/acting.h"
#include "airways/binding.h"
#include "airways/child_protection.h"
#include "airways/conditions.h"
#include "airways/flight_modules.h"
#include "airways/flight_rules.h"
#include "airways/flight_status.h"
#include "airways/identity.h"
#include "airways/instance.h"
#include "airways/instance_controller.h"
#include "airways/instance_work.h"
#include "airways/pinned_module.h"
#include "airways/platform.h"
#include "airways/terms.h"
#include "archive/copies.h"
#include "archive/module_archive.h"
#include "base/result.h"
#include "base/time.h"
#include "io/loop.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/object.h"
#include "modules/pin.h"
#include "modules/requester.h"
#include "reconcile/acting_rights.h"
#include "reconcile/controller.h"
#include "reconcile/event_log.h"
#include "tenants/policies.h"
#include "tenants/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace hangar::airways {

namespace {

using reconcile::Outcome;

// Half of all reconciles: tenants' code decides how long these take, and others must not wait for
// it.
std::size_t places_of(const Platform& platform) {
  return std::max<std::size_t>(platform.shared.concurrency / 2, 1);
}

}  // namespace

FlightController::FlightController(const Platform& platform, tenants::Policies& policies,
                                   Options options)
    : platform_(platform),
      policies_(policies),
      rules_{.policies = policies, .as_host = options.as_host},
      copies_({.platform = platform.shared,
               .store = platform.store,
               .format = std::move(options.copies),
               .log = platform.shared.log.named("airways"),
               .name = options.name + "-modules",
               .kept_in = options.kind.namespaced ? std::string() : platform.namespace_,
               .is_synced = [this] { return is_synced(); },
               .is_needed = [this](const archive::ArchivedModule& copy) { return is_pinned(copy); },
               .namespaces = [this] { return controller_.shell().namespaces(); }}),
      controller_(platform,
                  {.kind = std::move(options.kind),
                   .name = std::move(options.name),
                   .concurrency = places_of(platform),
                   .documents = 3,  // That of evaluate(), and those of InstanceWork.
                   .work =
                       [this](kube::ObjectPtr flight, Instance& instance, std::stop_token stop) {
                         return work_on(std::move(flight), instance, std::move(stop));
                       },
                   .forget = [this](const kube::ObjectKey& key) { forget(key); },
                   .on_synced = [this] { copies_.look_at_all(); }}) {}

FlightController::~FlightController() = default;

void FlightController::start() {
  if (controller_.kind().namespaced) {
    policies_.listen([this](const std::string& namespace_) { look_again(namespace_); });
  }
  copies_.start();
  controller_.start();
}

io::Task<void> FlightController::stop() {
  co_await controller_.stop();
  co_await copies_.stop();
}

std::map<std::string, std::uint64_t> FlightController::counts() const {
  std::map<std::string, std::uint64_t> counts;
  controller_.count_in(counts);
  return counts;
}

void FlightController::look_again(const std::string& namespace_) {
  for (const kube::ObjectPtr& flight : controller_.shell().list(namespace_))
    controller_.shell().enqueue(flight->key());
}

void FlightController::on_verification_keys() {
  for (auto& [key, memory] : flights_) {
    memory->module.asking.forget();
    controller_.shell().enqueue(key);
  }
}

std::string FlightController::listener_of(const kube::ObjectKey& key) const {
  return fmt::format("{} {}", controller_.kind().kind, key.to_string());
}

void FlightController::forget(const kube::ObjectKey& key) {
  modules::PinnedAsking::leave(platform_.modules.supply(), listener_of(key));
  const auto found = flights_.find(key);
  if (found == flights_.end()) return;
  const std::optional<modules::Pin> pin = std::move(found->second->module.pin);
  flights_.erase(found);
  look_at_copy(key, pin);
}

void FlightController::look_at_copy(const kube::ObjectKey& flight,
                                    const std::optional<modules::Pin>& former) {
  if (former) copies_.look_at(copies_.of(flight.namespace_, former->sha256));
}

bool FlightController::is_pinned(const archive::ArchivedModule& copy) {
  const bool is_namespaced = controller_.kind().namespaced;
  const std::string_view where = is_namespaced ? copy.namespace_ : std::string_view();
  return std::ranges::any_of(controller_.shell().list(where), [&](const kube::ObjectPtr& flight) {
    // The memory is newer than the status.
    const auto found = flights_.find(flight->key());
    const bool is_remembered = found != flights_.end() && found->second->uid == flight->uid();
    // Tenants decide how many Flights there are: those without the digest are not parsed.
    if (!is_remembered) {
      const kube::ObjectText text = flight->text();
      if (!text.view().contains(copy.sha256)) return false;
    }
    const std::optional<modules::Pin> pin =
        is_remembered ? found->second->module.pin : pin_in(flight->to_value(), kFlightModule);
    return pin && pin->sha256 == copy.sha256;
  });
}

FlightController::Memory& FlightController::memory_of(const json::Value& flight) {
  auto& memory = flights_[kube::key_of(flight)];
  const std::string_view uid = json::string_at(flight, {"metadata", "uid"});
  if (!memory || memory->uid != uid) {
    if (memory) look_at_copy(kube::key_of(flight), memory->module.pin);
    memory = std::make_unique<Memory>();
    memory->uid = uid;
    memory->module.pin = pin_in(flight, kFlightModule);
  }
  return *memory;
}

FlightController::OutcomeTask FlightController::work_on(kube::ObjectPtr flight, Instance& instance,
                                                        std::stop_token stop) {
  if (flight->is_being_deleted()) {
    co_return co_await take_down(std::move(flight), instance, std::move(stop));
  }
  // When the policies are known, all Flights are queued again.
  if (controller_.kind().namespaced && !rules_.are_known()) co_return Outcome{};
  Result<Outcome> outcome = co_await evaluate(std::move(flight), instance, std::move(stop));
  // Tenants may have many Flights, so the history is read again when it is needed.
  if (!instance.life.waits_for_release()) instance.history.reset();
  co_return outcome;
}

FlightController::OutcomeTask FlightController::take_down(kube::ObjectPtr flight,
                                                          Instance& instance,
                                                          std::stop_token stop) {
  const json::Value value = flight->to_value();
  (void)memory_of(value);  // So that forget() checks its copy.
  modules::PinnedAsking::leave(platform_.modules.supply(), listener_of(flight->key()));
  InstanceWork work({.platform = platform_,
                     .shell = controller_.shell(),
                     .memory = instance,
                     .binding = nullptr,
                     .prune = prune_of(value),
                     .actor = rules_.actor_of(value)},
                    *flight, std::move(stop));
  co_return co_await work.run();
}

FlightController::OutcomeTask FlightController::evaluate(kube::ObjectPtr flight, Instance& instance,
                                                         std::stop_token stop) {
  const json::Value value = flight->to_value();
  copies_.look_in(flight->key().namespace_);
  Memory& memory = memory_of(value);
  Result<std::shared_ptr<const Binding>> binding = co_await bind(value, memory, instance, stop);
  const Instant now = io::Loop::now();
  // A module that arrives within a moment is not worth a status write that says it is awaited.
  if (binding && !*binding && memory.module.asking.is_quiet(now)) {
    co_return Outcome{.requeue_after = memory.module.asking.again_in(now)};
  }
  InstanceWork work({.platform = platform_,
                     .shell = controller_.shell(),
                     .memory = instance,
                     .binding = binding ? *binding : nullptr,
                     .prune = prune_of(value),
                     .actor = rules_.actor_of(value),
                     .add_to_status =
                         [this, &value, &memory, &instance](json::Value& status) {
                           add_to_status(value, memory, instance, status);
                         }},
                    *flight, stop);
  if (!binding) {
    if (binding.error().kind() == ErrorKind::Cancelled) {
      co_return std::unexpected(std::move(binding).error());
    }
    HANGAR_CO_TRY(co_await work.report(verdict_of(binding.error())));
    if (binding.error().reason() == reconcile::kNamespaceNotAllowed) {
      co_return Outcome{.requeue_after = reconcile::kNotAllowedRecheck};
    }
    // Neither needs a back-off: the supply decides when the module's source is asked again, and a
    // changed policy queues the Flight.
    const bool is_of_module = memory.module.asking.error().has_value();
    const bool is_told = binding.error().reason() == tenants::kRefusedByPolicy;
    if (is_of_module) co_return Outcome{.requeue_after = memory.module.asking.again_in(now)};
    if (is_told) co_return Outcome{};
    co_return std::unexpected(std::move(binding).error());
  }
  if (!*binding) {
    HANGAR_CO_TRY(co_await work.report(
        {.reason = std::string(kReasonInProgress),
         .message = fmt::format("the flight: {}", memory.module.asking.waits_for())}));
    co_return Outcome{.requeue_after = memory.module.asking.again_in(now)};
  }
  Result<Outcome> outcome = co_await work.run();
  const Duration again = memory.module.asking.again_in(io::Loop::now());
  // The status says what is wrong. Another module may not fail.
  if (!outcome && outcome.error().kind() == ErrorKind::InvalidInput) {
    co_return Outcome{.requeue_after = again};
  }
  if (outcome) outcome->requeue_after = std::min(outcome->requeue_after.value_or(again), again);
  co_return outcome;
}

io::Task<Result<>> FlightController::check(const json::Value& flight, const Terms& terms,
                                           std::stop_token stop) {
  const Actor actor = HANGAR_CO_TRY(rules_.check(flight, terms));
  if (std::optional<std::string> lacks =
          unsupported_mode(terms.mode, platform_.means.has_webhooks)) {
    co_return std::unexpected(Error(ErrorKind::InvalidInput, *std::move(lacks))
                                  .with_reason(std::string(kReasonUnsupported)));
  }
  if (terms.mode == Mode::Static) {
    HANGAR_CO_TRY(platform_.check_protection(
        controller_.kind().namespaced ? kFlightChildren : kClusterFlightChildren));
  }
  co_return co_await actor.check(platform_.shared.acting, std::move(stop));
}

io::Task<Result<std::shared_ptr<const Binding>>> FlightController::bind(const json::Value& flight,
                                                                        Memory& memory,
                                                                        Instance& instance,
                                                                        std::stop_token stop) {
  const Result<Terms> terms = parse_flight(flight);
  Result<> may =
      terms ? co_await check(flight, *terms, stop) : Result<>(std::unexpected(terms.error()));
  if (!may) {
    modules::PinnedAsking::leave(platform_.modules.supply(), listener_of(kube::key_of(flight)));
    memory.module.asking = {};
    memory.module.module_of.clear();
    co_return std::unexpected(std::move(may).error());
  }
  modules::Requester requester = rules_.requester_of(flight);
  // Includes the policy that restricts addresses: if it changes, the module is requested again.
  const std::string definition =
      fmt::format("{}/{}/{}", memory.uid, json::int_at(flight, {"metadata", "generation"}),
                  requester.public_because());
  std::optional<FlightModule> module = HANGAR_CO_TRY(co_await ask_for_module(
      flight, memory, *terms, definition, std::move(requester), std::move(stop)));
  if (!module) co_return std::shared_ptr<const Binding>();
  memory.module.describe(terms->flight);
  std::string bound_of = fmt::format("{} {}", definition, module->sha256);
  if (!memory.binding || memory.bound_of != bound_of) {
    if (memory.binding && memory.binding->module.sha256 != module->sha256) {
      instance.reasons.add("another module");
    }
    memory.bound_of = std::move(bound_of);
    memory.binding =
        std::make_shared<const Binding>(Binding{.terms = *terms,
                                                .module = *std::move(module),
                                                .is_first_use = memory.module.is_first_use()});
    instance.life.on_changed();
  }
  co_return memory.binding;
}

io::Task<Result<std::optional<FlightModule>>> FlightController::ask_for_module(
    const json::Value& flight, Memory& memory, const Terms& terms, std::string definition,
    modules::Requester requester, std::stop_token stop) {
  const kube::ObjectKey key = kube::key_of(flight);
  const std::optional<modules::Pin> before = memory.module.pin;
  Result<std::optional<FlightModule>> module = memory.module.ask(
      platform_.modules, {.role = kFlightModule,
                          .source = terms.flight,
                          .requester = std::move(requester),
                          .definition = std::move(definition),
                          .listener = {.name = listener_of(key), .changed = [this, key] {
                                         controller_.shell().enqueue(key);
                                       }}});
  if (memory.module.pin != before) look_at_copy(key, before);
  if (!module || !*module) co_return module;
  const std::optional<reconcile::EventText> not_kept = HANGAR_CO_TRY(
      co_await memory.module.keep_copy(copies_, flight, kFlightModule, std::move(stop)));
  if (not_kept) platform_.shared.events.record(flight, *not_kept);
  co_return module;
}

void FlightController::add_to_status(const json::Value& flight, const Memory& memory,
                                     const Instance& instance, json::Value& status) const {
  if (instance.has_looked) status.as_object()["inventory"] = inventory_of(instance.released);
  if (memory.module.facts) {
    const std::optional<reconcile::EventText> event =
        put_module(status, kFlightModule, *memory.module.facts,
                   json::int_at(flight, {"metadata", "generation"}), io::Loop::wall_now());
    if (event) platform_.shared.events.record(flight, *event);
  }
  // Replaces what the flight has printed for itself.
  if (platform_.pod.empty()) {
    status.as_object().erase("pod");
  } else {
    status.as_object()["pod"] = platform_.pod;
  }
}

}  // namespace hangar::airways
