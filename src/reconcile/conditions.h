// The status of an object: its conditions in the form of metav1.Condition, and how it is written.
#pragma once

#include "base/time.h"
#include "json/value.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace hangar::reconcile {

// The condition that people wait for.
inline constexpr std::string_view kReady = "Ready";
// The host can't do what the spec says, and waiting for what is under way does not help.
inline constexpr std::string_view kStalled = "Stalled";
// The reason while the host has no memory for an object of its namespace.
inline constexpr std::string_view kNamespaceMemory = "NamespaceMemory";

enum class ConditionStatus : std::uint8_t { True, False, Unknown };
[[nodiscard]] std::string_view name_of(ConditionStatus status);

struct Condition {
  std::string type = std::string(kReady);
  ConditionStatus status = ConditionStatus::Unknown;
  std::string reason;
  std::string message;  // Any bytes: made valid UTF-8 and cut to limits::kConditionMessageBytesMax.
  std::int64_t observed_generation = 0;  // 0: not known.
};

// Puts `condition` into status.conditions (`status` becomes an object if it is not one). Returns
// whether anything changed. lastTransitionTime moves only when the condition's status does.
bool set_condition(json::Value& status, const Condition& condition, WallTime now);

// Copies every condition of `from` (a status) by type, as if set one after the other; a time in
// `from` is kept if the condition's status changes. An element that is not a condition (not an
// object, or without a type) is ignored. Returns whether anything changed.
bool merge_conditions(json::Value& status, const json::Value& from, WallTime now);

// Null when there is none.
[[nodiscard]] const json::Value* find_condition(const json::Value& status, std::string_view type);

// For a whole object: the condition is True and was not observed at another generation.
[[nodiscard]] bool meets_condition(const json::Value& object, std::string_view type);

}  // namespace hangar::reconcile
