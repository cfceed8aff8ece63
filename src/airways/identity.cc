#include "airways/identity.h"

#include "airways/conditions.h"
#include "airways/pinned_module.h"
#include "airways/resource_ref.h"
#include "base/time.h"
#include "json/value.h"
#include "reconcile/acting_rights.h"
#include "tenants/rules.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::airways {

namespace {

constexpr std::array<std::string_view, 4> kOurReasons = {kReasonReady, kReasonInProgress,
                                                         kReasonError, kReasonTerminating};

const json::Value* status_of(const json::Value& object) {
  const json::Value* status = json::find(object, {"status"});
  return status != nullptr && status->is_object() ? status : nullptr;
}

const json::Value* ready_of(const json::Value& object) {
  const json::Value* status = status_of(object);
  return status == nullptr ? nullptr : find_condition(*status, kReady);
}

// A flight that reads the whole instance and prints it again repeats our own condition.
bool is_echo(const json::Value& printed, const json::Value& evaluated) {
  const json::Value* before = ready_of(evaluated);
  if (before == nullptr) return false;
  const auto same = [&](std::string_view key) {
    return json::string_at(printed, {key}) == json::string_at(*before, {key});
  };
  return same("status") && same("reason") && same("message") &&
         std::ranges::find(kOurReasons, json::string_at(printed, {"reason"})) != kOurReasons.end();
}

void erase_condition(json::Value& status, std::string_view type) {
  json::Value* member = json::find(status, {"conditions"});
  if (member == nullptr || !member->is_array()) return;
  json::Array& conditions = member->get_array();
  const auto [first, last] = std::ranges::remove_if(conditions, [&](const json::Value& condition) {
    return json::string_at(condition, {"type"}) == type;
  });
  conditions.erase(first, last);
}

}  // namespace

std::optional<json::Value> take_identity(Stages& stages, const ResourceRef& instance) {
  std::optional<json::Value> identity;
  for (Stage& stage : stages) {
    std::erase_if(stage, [&](json::Value& resource) {
      ResourceRef ref = ref_of(resource);
      if (ref.namespace_.empty()) ref.namespace_ = instance.namespace_;
      if (ref != instance) return false;
      identity = std::move(resource);
      return true;
    });
  }
  std::erase_if(stages, [](const Stage& stage) { return stage.empty(); });
  return identity;
}

Verdict waiting_for_ready() {
  return {ConditionStatus::False, std::string(kReasonInProgress),
          "waiting for flight to become ready"};
}
Verdict deployed() {
  return {ConditionStatus::True, std::string(kReasonReady), "Successfully deployed"};
}
Verdict failed(std::string message) {
  return {ConditionStatus::False, std::string(kReasonError), std::move(message)};
}
Verdict verdict_of(const Error& error) {
  Verdict verdict = failed(error.message());
  for (const std::string_view reason :
       {kReasonModuleUnavailable, kReasonUnsupported, reconcile::kNamespaceNotAllowed,
        tenants::kRefusedByPolicy}) {
    if (error.reason() == reason) verdict.reason = reason;
  }
  return verdict;
}
Verdict being_removed() {
  return {ConditionStatus::False, std::string(kReasonTerminating),
          "Mayday: Flight is being removed"};
}

StatusUpdate next_status(const StatusInput& input, WallTime now) {
  const std::int64_t generation = json::int_at(input.live, {"metadata", "generation"});
  StatusUpdate update;
  const json::Value* live_status = status_of(input.live);
  update.status = live_status == nullptr ? json::Value(json::Object()) : *live_status;
  update.flight_owns_ready = input.flight_owned_ready;
  if (generation != json::int_at(input.evaluated, {"metadata", "generation"})) {
    update.outdated = true;
    return update;
  }

  const json::Value* printed = input.identity == nullptr ? nullptr : status_of(*input.identity);
  if (printed != nullptr) {
    const json::Value* printed_ready = find_condition(*printed, kReady);
    update.flight_owns_ready =
        printed_ready != nullptr &&
        (input.flight_owned_ready || !is_echo(*printed_ready, input.evaluated));

    json::Value conditions = json::Object();
    if (const json::Array* ours = json::array_at(update.status, {"conditions"})) {
      json::set_at(conditions, {"conditions"}, *ours);
    }
    json::Value theirs = *printed;
    if (!update.flight_owns_ready) erase_condition(theirs, kReady);
    merge_conditions(conditions, theirs, now);

    update.status = std::move(theirs);
    json::erase_at(update.status, {"conditions"});
    if (const json::Array* merged = json::array_at(conditions, {"conditions"})) {
      json::set_at(update.status, {"conditions"}, *merged);
    }
  } else {
    update.flight_owns_ready = false;
  }

  if (input.verdict && !update.flight_owns_ready) {
    set_condition(update.status,
                  {.status = input.verdict->status,
                   .reason = input.verdict->reason,
                   .message = input.verdict->message,
                   .observed_generation = generation},
                  now);
  }
  const json::Value nothing = json::Object();
  update.changed = !json::equal(update.status, live_status == nullptr ? nothing : *live_status);
  return update;
}

}  // namespace hangar::airways
