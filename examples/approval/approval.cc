// A state machine without JavaScript: a person has to approve before a ConfigMap is published.
//
//   idle -PROVISION-> waiting -APPROVE-> publishing -K8S_RESOURCE_CREATED-> published
//                             -REJECT-> rejected       -FAILURE-> waiting
//
// It keeps the published contract: `malloc`, and `handle_event`, which receives a state and an
// event as JSON and returns {"newState", "actions"} as NUL-terminated JSON. Any language that can
// export two functions can do that; docs/abi/statemachine.md has the contract in full.
#include <nlohmann/json.hpp>

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>

using nlohmann::json;

namespace {

struct Move {
  std::string_view from, event, to;
};
constexpr Move kMoves[] = {
    {"idle", "PROVISION", "waiting"},     {"waiting", "APPROVE", "publishing"},
    {"waiting", "REJECT", "rejected"},    {"publishing", "K8S_RESOURCE_CREATED", "published"},
    {"publishing", "FAILURE", "waiting"},
};

json publish(const json& context) {
  return {{"type", "APPLY"},
          {"params",
           {{"manifest",
             {{"apiVersion", "v1"},
              {"kind", "ConfigMap"},
              {"metadata", {{"name", context.value("name", "approved")}}},
              {"data",
               {{"text", context.value("text", "")},
                {"approvedBy", context.value("approvedBy", "")}}}}}}}};
}

json decide(const json& state, const json& event) {
  // The machine has not begun yet: the event brings spec.input.
  if (!state.is_object()) {
    return {{"newState", {{"value", "idle"}, {"context", event.value("input", json::object())}}}};
  }
  json next = state;
  const std::string value = state.value("value", ""), type = event.value("type", "");
  for (const Move& move : kMoves) {
    if (move.from != value || move.event != type) continue;
    next["value"] = move.to;
    if (type == "APPROVE") next["context"]["approvedBy"] = event.value("by", "somebody");
    if (type == "FAILURE") next["context"]["lastFailure"] = event.value("message", "");
    json answer = {{"newState", next}, {"handled", true}, {"actions", json::array()}};
    if (move.to == "publishing") answer["actions"].push_back(publish(next["context"]));
    answer["final"] = move.to == "published" || move.to == "rejected";
    return answer;
  }
  return {{"newState", next}, {"handled", false}, {"actions", json::array()}};
}

}  // namespace

extern "C" __attribute__((export_name("handle_event"))) const char* handle_event(
    const char* state, std::uint32_t state_bytes, const char* event, std::uint32_t event_bytes) {
  static std::string answer;  // The host reads it before the next call.
  const json given =
      json::parse(std::string_view(state, state_bytes), nullptr, /*allow_exceptions=*/false);
  const json happened = json::parse(std::string_view(event, event_bytes), nullptr, false);
  if (!happened.is_object() || given.is_discarded()) {
    answer = R"({"error": "the state or the event is not JSON"})";
  } else {
    answer = decide(given, happened).dump(-1, ' ', false, json::error_handler_t::replace);
  }
  return answer.c_str();
}
