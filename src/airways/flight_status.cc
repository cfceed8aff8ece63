#include "airways/flight_status.h"

#include "airways/conditions.h"
#include "airways/limits.h"
#include "base/time.h"
#include "json/value.h"
#include "modules/pin.h"
#include "reconcile/event_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace hangar::airways {

json::Value module_status(const ModuleFacts& facts) {
  json::Object flight{{"sha256", facts.sha256}};
  if (!facts.resolved.empty()) flight["resolved"] = facts.resolved;
  if (facts.pin) {
    flight["definition"] = facts.pin->definition;
    if (!facts.pin->replaces.empty()) flight["replaces"] = facts.pin->replaces;
  }
  return flight;
}

std::optional<modules::Pin> pin_in(const json::Value& airway, const ModuleRole& role) {
  const auto text = [&](std::string_view member) {
    return std::string(json::string_at(airway, {"status", role.name, member}));
  };
  modules::Pin pin{.definition = text("definition"),
                   .sha256 = text("sha256"),
                   .resolved = text("resolved"),
                   .replaces = text("replaces")};
  if (pin.definition.empty() || pin.sha256.empty()) return std::nullopt;
  return pin;
}

json::Value inventory_of(std::span<const Instance::Released> released) {
  json::Array inventory;
  for (const Instance::Released& one :
       released.first(std::min(released.size(), limits::kInventoryMax))) {
    inventory.push_back(json::Object{
        {"resource", one.ref.to_string()}, {"version", one.gvk.version}, {"ready", one.is_ready}});
  }
  return inventory;
}

Condition module_condition(const ModuleRole& role, const ModuleFacts& facts) {
  Condition condition{.type = std::string(role.is_up_to_date), .status = ConditionStatus::True};
  if (facts.upgrade == modules::Upgrade::Never) {
    condition.reason = "Fixed";
    condition.message =
        fmt::format("the {} says which module it means: sha256 {}", role.of, facts.sha256);
  } else if (facts.upgrade == modules::Upgrade::Followed) {
    condition.reason = "Followed";
    condition.message = fmt::format("a new module behind {} is applied at once", facts.reference);
  } else if (!facts.offered_sha256.empty()) {
    condition.status = ConditionStatus::False;
    condition.reason = kReasonSourceChanged;
    condition.message = fmt::format(
        "the module behind {} has changed: sha256 {} -> {}; {} on with the former. Set {} to the "
        "latter, or name another URL or tag, to take it over",
        facts.reference, facts.sha256, facts.offered_sha256, role.go, role.checksum_field);
  } else if (facts.look_error) {
    condition.status = ConditionStatus::Unknown;
    condition.reason = "SourceUnavailable";
    condition.message =
        fmt::format("{} on with sha256 {}; whether its source still serves that is not known: {}",
                    role.go, facts.sha256, facts.look_error->message());
  } else {
    condition.reason = "Current";
    condition.message = fmt::format("{} serves the module that {} on with: sha256 {}",
                                    facts.reference, role.go, facts.sha256);
  }
  return condition;
}

std::optional<reconcile::EventText> put_module(json::Value& status, const ModuleRole& role,
                                               const ModuleFacts& facts, std::int64_t generation,
                                               WallTime now) {
  status.as_object()[role.name] = module_status(facts);
  const json::Value* const present = find_condition(status, role.is_up_to_date);
  // The condition from an earlier host stays until this host has an answer from the source.
  if (facts.is_source_unasked && !facts.look_error && present != nullptr) return std::nullopt;
  Condition condition = module_condition(role, facts);
  condition.observed_generation = generation;
  std::optional<reconcile::EventText> event;
  if (condition.reason == kReasonSourceChanged &&
      (present == nullptr || json::string_at(*present, {"message"}) != condition.message)) {
    event = {.type = reconcile::EventType::Warning,
             .reason = std::string(role.changed),
             .message = condition.message};
  }
  set_condition(status, condition, now);
  return event;
}

}  // namespace hangar::airways
