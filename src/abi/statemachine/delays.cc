#include "abi/statemachine/delays.h"

#include "abi/statemachine/limits.h"
#include "base/number.h"
#include "json/value.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::abi::statemachine {

namespace {

std::optional<Duration> milliseconds_of(std::string_view text) {
  const auto count = parse_number<std::int64_t>(text);
  if (!count || *count < 0) return std::nullopt;
  if (std::chrono::milliseconds(*count) > limits::kWorkflowDelayMax) return std::nullopt;
  return std::chrono::milliseconds(*count);
}

void add_delays(const json::Value& node, std::vector<Delay>& delays) {
  const json::Object* const after = json::object_at(node, {"after"});
  if (after == nullptr) return;
  for (const auto& entry : *after) {
    // All transitions of a delay have the same event.
    const json::Array* const transitions = entry.value().if_array();
    if (transitions == nullptr || transitions->empty()) continue;
    const std::string_view event = json::string_at(transitions->front(), {"event"});
    if (event.starts_with(kDelayPrefix)) {
      delays.push_back({.event = std::string(event), .duration = milliseconds_of(entry.key())});
    }
  }
}

// Collects the delays of `node`, which is active, and of the active states below it.
void walk(const json::Value& node, const json::Value& value, std::vector<Delay>& delays) {
  add_delays(node, delays);
  const json::Object* const states = json::object_at(node, {"states"});
  if (states == nullptr) return;
  if (value.is_string()) {
    const json::Value* const child = states->if_contains(value.get_string());
    if (child != nullptr) add_delays(*child, delays);
  } else if (const json::Object* const below = value.if_object()) {
    for (const auto& entry : *below) {
      if (const json::Value* const child = states->if_contains(entry.key())) {
        walk(*child, entry.value(), delays);
      }
    }
  }
}

}  // namespace

Result<std::vector<Delay>> delays_of(std::string_view definition, std::string_view value) {
  const json::Value machine = HANGAR_TRY(json::parse(definition));
  const json::Value at = HANGAR_TRY(json::parse(value));
  if (!machine.is_object()) return fail(ErrorKind::InvalidInput, "the definition is not an object");
  std::vector<Delay> delays;
  walk(machine, at, delays);
  if (delays.size() > limits::kMachineDelaysMax) {
    return fail(ErrorKind::LimitExceeded,
                fmt::format("the machine's states have {} delays, at most {} can run",
                            delays.size(), limits::kMachineDelaysMax));
  }
  return delays;
}

}  // namespace hangar::abi::statemachine
