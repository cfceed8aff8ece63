#include "reconcile/conditions.h"

#include "base/utf8.h"
#include "reconcile/limits.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

namespace hangar::reconcile {

namespace {

// A guest's stderr may hold any bytes of any length; JSON needs UTF-8 and the CRD's schema a bound.
std::string to_message(std::string_view bytes) {
  constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
  constexpr std::string_view kCut = "...";
  std::string message;
  while (!bytes.empty() && message.size() <= limits::kConditionMessageBytesMax) {
    const std::size_t valid = valid_utf8_prefix(bytes);
    message += bytes.substr(0, valid);
    bytes.remove_prefix(valid);
    if (bytes.empty()) break;
    message += kReplacement;
    bytes.remove_prefix(1);
  }
  if (message.size() > limits::kConditionMessageBytesMax) {
    message.resize(utf8_beginning(message, limits::kConditionMessageBytesMax - kCut.size()).size());
    message += kCut;
  }
  return message;
}

struct Fields {
  std::string_view type;
  std::string_view status;
  std::string_view reason;
  std::string message;
  std::int64_t observed_generation = 0;
  std::string last_transition_time;
};

bool assign(json::Object& object, std::string_view key, json::Value value) {
  if (json::Value* member = object.if_contains(key)) {
    if (json::equal(*member, value)) return false;
    *member = std::move(value);
    return true;
  }
  object.emplace(key, std::move(value));
  return true;
}

// As meta.SetStatusCondition does.
bool put(json::Value& status, const Fields& fields) {
  if (!status.is_object()) status.emplace_object();
  json::Value& member = status.get_object()["conditions"];
  if (!member.is_array()) member.emplace_array();
  json::Array& conditions = member.get_array();

  const auto found = std::ranges::find_if(conditions, [&](const json::Value& condition) {
    return json::string_at(condition, {"type"}) == fields.type;
  });
  if (found == conditions.end()) {
    json::Object condition;
    condition["type"] = fields.type;
    condition["status"] = fields.status;
    if (fields.observed_generation != 0) {
      condition["observedGeneration"] = fields.observed_generation;
    }
    condition["lastTransitionTime"] = fields.last_transition_time;
    condition["reason"] = fields.reason;
    condition["message"] = fields.message;
    conditions.emplace_back(std::move(condition));
    return true;
  }

  json::Object& condition = found->get_object();
  bool changed = false;
  const bool turned = json::string_at(*found, {"status"}) != fields.status;
  if (turned || json::string_at(*found, {"lastTransitionTime"}).empty()) {
    changed |= assign(condition, "status", json::Value(fields.status));
    changed |= assign(condition, "lastTransitionTime", json::Value(fields.last_transition_time));
  }
  changed |= assign(condition, "reason", json::Value(fields.reason));
  changed |= assign(condition, "message", json::Value(fields.message));
  // Zero means that the generation is not known, as Go prints it.
  if (fields.observed_generation == 0) {
    changed |= condition.erase("observedGeneration") > 0;
  } else if (json::int_at(*found, {"observedGeneration"}) != fields.observed_generation) {
    changed |= assign(condition, "observedGeneration", json::Value(fields.observed_generation));
  }
  return changed;
}

}  // namespace

std::string_view name_of(ConditionStatus status) {
  switch (status) {
    case ConditionStatus::True:
      return "True";
    case ConditionStatus::False:
      return "False";
    case ConditionStatus::Unknown:
      return "Unknown";
  }
  return "Unknown";
}

bool set_condition(json::Value& status, const Condition& condition, WallTime now) {
  return put(status, {.type = condition.type,
                      .status = name_of(condition.status),
                      .reason = condition.reason,
                      .message = to_message(condition.message),
                      .observed_generation = condition.observed_generation,
                      .last_transition_time = to_rfc3339(now)});
}

bool merge_conditions(json::Value& status, const json::Value& from, WallTime now) {
  const json::Array* conditions = json::array_at(from, {"conditions"});
  if (conditions == nullptr) return false;
  bool changed = false;
  for (const json::Value& condition : *conditions) {
    const std::string_view type = json::string_at(condition, {"type"});
    if (type.empty()) continue;
    std::string time(json::string_at(condition, {"lastTransitionTime"}));
    const Result<WallTime> parsed = parse_rfc3339(time);
    // Go's zero time means that the time was not set.
    if (!parsed || time.starts_with("0001-")) time = to_rfc3339(now);
    changed |= put(status, {.type = type,
                            .status = json::string_at(condition, {"status"}),
                            .reason = json::string_at(condition, {"reason"}),
                            .message = to_message(json::string_at(condition, {"message"})),
                            .observed_generation = json::int_at(condition, {"observedGeneration"}),
                            .last_transition_time = std::move(time)});
  }
  return changed;
}

const json::Value* find_condition(const json::Value& status, std::string_view type) {
  const json::Array* conditions = json::array_at(status, {"conditions"});
  if (conditions == nullptr) return nullptr;
  const auto found = std::ranges::find_if(*conditions, [&](const json::Value& condition) {
    return json::string_at(condition, {"type"}) == type;
  });
  return found == conditions->end() ? nullptr : &*found;
}

bool meets_condition(const json::Value& object, std::string_view type) {
  const json::Value* status = json::find(object, {"status"});
  const json::Value* condition = status == nullptr ? nullptr : find_condition(*status, type);
  if (condition == nullptr) return false;
  const std::int64_t observed = json::int_at(*condition, {"observedGeneration"});
  if (observed > 0 && observed != json::int_at(object, {"metadata", "generation"})) return false;
  return json::string_at(*condition, {"status"}) == "True";
}

}  // namespace hangar::reconcile
