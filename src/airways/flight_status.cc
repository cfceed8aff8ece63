#include "airways/flight_status.h"

#include "airways/conditions.h"
#include "json/value.h"
#include "modules/pin.h"

#include <fmt/format.h>

#include <optional>
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

Condition module_condition(const ModuleRole& role, const ModuleFacts& facts) {
  Condition condition{.type = std::string(role.is_up_to_date), .status = ConditionStatus::True};
  if (facts.upgrade == modules::Upgrade::Never) {
    condition.reason = "Fixed";
    condition.message =
        fmt::format("the Airway says which module it means: sha256 {}", facts.sha256);
  } else if (facts.upgrade == modules::Upgrade::Followed) {
    condition.reason = "Followed";
    condition.message =
        fmt::format("what {} leads to is taken up whenever it changes", facts.reference);
  } else if (!facts.offered_sha256.empty()) {
    condition.status = ConditionStatus::False;
    condition.reason = kReasonSourceChanged;
    condition.message = fmt::format(
        "the module behind {} has changed: sha256 {} -> {}; instances go on with the former. Set "
        "spec.wasmUrls.{}Checksum to the latter, or name another URL or tag, to take it over",
        facts.reference, facts.sha256, facts.offered_sha256, role.name);
  } else if (facts.look_error) {
    condition.status = ConditionStatus::Unknown;
    condition.reason = "SourceUnavailable";
    condition.message = fmt::format(
        "instances go on with sha256 {}; whether its source still serves that is not "
        "known: {}",
        facts.sha256, facts.look_error->message());
  } else {
    condition.reason = "Current";
    condition.message = fmt::format("{} serves the module that instances run: sha256 {}",
                                    facts.reference, facts.sha256);
  }
  return condition;
}

}  // namespace hangar::airways
