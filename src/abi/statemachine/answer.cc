#include "abi/statemachine/answer.h"

#include "abi/statemachine/limits.h"
#include "abi/statemachine/machine.h"
#include "base/result.h"
#include "base/time.h"
#include "base/utf8.h"
#include "json/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::abi::statemachine {

namespace {

// The bound of a machine's text in an error, which ends up in a condition.
constexpr std::size_t kErrorBytesMax = 2048;

std::string bounded(std::string_view text) {
  if (text.size() <= kErrorBytesMax) return std::string(text);
  return std::string(utf8_beginning(text, kErrorBytesMax)) + "...";
}

std::unexpected<Error> no_answer(std::string message) {
  return fail(ErrorKind::InvalidInput, std::move(message));
}

std::optional<double> number_of(const json::Value* value) {
  if (value == nullptr || !value->is_number()) return std::nullopt;
  return value->to_number<double>();
}

const json::Value* member(const json::Object& object, std::string_view name) {
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &found->value();
}

std::string text_member(const json::Object& object, std::string_view name) {
  const json::Value* const value = member(object, name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

bool is_true(const json::Value* value) {
  return value != nullptr && value->is_bool() && value->get_bool();
}

// Ids are shown to people, and are part of other ids.
bool is_actor_id(std::string_view id) {
  constexpr std::size_t kBytesMax = 1024;
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.()-/#";
  return !id.empty() && id.size() <= kBytesMax &&
         id.find_first_not_of(kLetters) == std::string_view::npos;
}

// The actor that `value` names, if there is a value.
Result<std::string> actor_id(const json::Value* value) {
  if (value == nullptr || value->is_null()) return std::string();
  if (value->is_string() && is_actor_id(value->get_string())) {
    return std::string(value->get_string());
  }
  return no_answer(fmt::format("{} is not the id of an actor: letters, digits and _.()-/#",
                               bounded(json::dump(*value))));
}

// True for a State of XState 4 as JSON; false for a snapshot of version 5 or anything else.
bool is_state4(const json::Object& state) {
  return state.contains("value") && state.contains("_event");
}

// An answer with child machines is refused: the caller that steps the machine would have to run its
// actors.
constexpr std::string_view kNoActors =
    "child machines run in a bundle that exports its machine, and no handle_event";

// Turns a list of actions into the parts of a Step.
class Reader {
 public:
  explicit Reader(Step& step) : step_(step) {}

  Result<> add(const json::Value& value) {
    if (value.is_string()) return add_asked(std::string(value.get_string()), nullptr, nullptr);
    const json::Object* const action = value.if_object();
    const json::Value* const type = action != nullptr ? member(*action, "type") : nullptr;
    const std::string_view name =
        type != nullptr && type->is_string() ? type->get_string() : std::string_view();
    if (action == nullptr) return add_asked({}, nullptr, nullptr);
    if (name.starts_with("xstate.")) return add_builtin(name, *action);
    return add_asked(std::string(name), member(*action, "params"), member(*action, "actor"));
  }

  // If `id` is empty, the event's type is the id.
  Result<> start_timer(std::string id, const json::Value* delay, const json::Value* event,
                       bool replaces) {
    HANGAR_TRY(count_timer());
    const json::Object* const object = event != nullptr ? event->if_object() : nullptr;
    if (object == nullptr || text_member(*object, "type").empty()) {
      return no_answer(fmt::format("timer {} has no event with a type", id));
    }
    const std::optional<double> milliseconds = number_of(delay);
    if (!milliseconds) {
      return no_answer(fmt::format("timer {} has the delay {}: not a number of milliseconds", id,
                                   delay == nullptr ? "none" : bounded(json::dump(*delay))));
    }
    using Milliseconds = std::chrono::duration<double, std::milli>;
    if (!(Milliseconds(*milliseconds) <= Milliseconds(limits::kWorkflowDelayMax))) {
      return no_answer(fmt::format("timer {} has a delay of more than ten years", id));
    }
    if (id.empty()) id = text_member(*object, "type");
    if (replaces) forget_started(id);
    step_.timers_started.push_back(
        {.id = std::move(id),
         .delay = std::chrono::duration_cast<Duration>(Milliseconds(std::max(0.0, *milliseconds))),
         .event = json::dump(*event),
         .replaces = replaces});
    return {};
  }

  Result<> cancel_timer(const std::string& id) {
    HANGAR_TRY(count_timer());
    forget_started(id);
    if (!id.empty() &&
        std::ranges::find(step_.timers_cancelled, id) == step_.timers_cancelled.end())
      step_.timers_cancelled.push_back(id);
    return {};
  }

 private:
  // Each timer is searched for among the others, so their number must be bounded.
  Result<> count_timer() {
    if (++timer_count_ <= limits::kMachineStepTimersMax) return {};
    return fail(ErrorKind::LimitExceeded,
                fmt::format("the machine starts and cancels more than {} timers in one step",
                            limits::kMachineStepTimersMax));
  }
  void forget_started(const std::string& id) {
    std::erase_if(step_.timers_started, [&id](const Timer& timer) { return timer.id == id; });
  }

  Result<> add_asked(std::string type, const json::Value* params, const json::Value* actor) {
    if (type.empty()) return no_answer("the machine asks for an action without a type");
    const bool has_params = params != nullptr && !params->is_null();
    if (has_params && !params->is_object()) {
      return no_answer(fmt::format("the params of action {} are not an object", bounded(type)));
    }
    step_.actions.push_back({.type = std::move(type),
                             .params = has_params ? json::dump(*params) : "{}",
                             .actor = HANGAR_TRY(actor_id(actor))});
    return {};
  }

  // Version 4 has the details in the action, version 5 in its params.
  Result<> add_builtin(std::string_view type, const json::Object& action) {
    const json::Value* const params = member(action, "params");
    const json::Object& said =
        params != nullptr && params->is_object() ? params->get_object() : action;
    if (type == "xstate.cancel") {
      return cancel_timer(text_member(said, "sendId"));
    }
    if (type == "xstate.send" || type == "xstate.sendTo" || type == "xstate.raise") {
      const json::Value* const delay = member(said, "delay");
      const bool has_delay = delay != nullptr && !delay->is_null();
      if (type == "xstate.raise" && !has_delay) return {};  // Handled in the same step.
      const json::Value* const to = member(said, "to");
      if (to != nullptr && !to->is_null() && *to != "#_internal") {
        return no_answer(
            fmt::format("the machine sends an event to {}: {}; to another workflow, ask the host "
                        "for an action SEND",
                        bounded(json::dump(*to)), kNoActors));
      }
      const json::Value now = 0;
      const json::Value* const event = member(said, "event");
      const std::string id = text_member(said, "id");
      // For a delayed event without an id, version 4 uses the type as its id and version 5 uses
      // none: such events do not replace each other.
      const bool is_named =
          !id.empty() && (event == nullptr || id != json::string_at(*event, {"type"}));
      return start_timer(id, has_delay ? delay : &now, event, is_named);
    }
    if (type == "xstate.start" || type == "xstate.spawnChild" || type == "xstate.invoke") {
      const json::Value* const activity = member(said, "activity");
      std::string what = text_member(said, "src");
      if (what.empty() && activity != nullptr && activity->is_object()) {
        what = text_member(activity->get_object(), "id");
      }
      return no_answer(fmt::format("the machine invokes {}: {}",
                                   what.empty() ? "an actor" : bounded(what), kNoActors));
    }
    return {};  // Logs, emitted events, stops: they have no receiver.
  }

  Step& step_;
  std::size_t timer_count_ = 0;
};

// Two equal actions have the same identity.
std::string identity_of(const json::Value& action) {
  if (action.is_string()) return fmt::format("{} {{}}", action.get_string().c_str());
  const json::Object* const object = action.if_object();
  if (object == nullptr) return json::dump(action);
  const json::Value* const params = member(*object, "params");
  return fmt::format("{} {}", text_member(*object, "type"),
                     params == nullptr || params->is_null() ? "{}" : json::dump(*params));
}

// The article's entry point returns the actions of all active states after every event. This
// removes the actions of states that were active before, as far as the state's metadata (its
// actions by node, unless they are functions) tells.
void drop_repeated(json::Array& actions, const json::Object& state, const json::Object& before) {
  const json::Value* const meta = member(state, "meta");
  const json::Value* const meta_before = member(before, "meta");
  const json::Value* const executed = member(state, "actions");
  if (meta == nullptr || !meta->is_object()) return;
  // The state nodes whose delays started: such a timer's id ends with ")#" and the node's.
  std::set<std::string_view> restarted;
  if (executed != nullptr && executed->is_array()) {
    for (const json::Value& action : executed->get_array()) {
      if (json::string_at(action, {"type"}) != "xstate.send") continue;
      const std::string_view id = json::string_at(action, {"id"});
      const std::size_t end = id.rfind(")#");
      if (end != std::string_view::npos) restarted.insert(id.substr(end + 2));
    }
  }
  const auto was_active = [&](std::string_view id) {
    if (meta_before == nullptr || !meta_before->is_object() ||
        !meta_before->get_object().contains(id)) {
      return false;
    }
    // The state's delays started again, so it was left and entered.
    return !restarted.contains(id);
  };
  std::multiset<std::string> repeated;
  std::multiset<std::string> entered;
  bool has_unknown_repeated = false;
  bool has_unknown_entered = false;
  for (const auto& entry : meta->get_object()) {
    const bool is_repeated = was_active(entry.key());
    const json::Array* const own = json::array_at(entry.value(), {"actions"});
    if (own == nullptr) {
      (is_repeated ? has_unknown_repeated : has_unknown_entered) = true;
      continue;
    }
    for (const json::Value& action : *own)
      (is_repeated ? repeated : entered).insert(identity_of(action));
  }
  json::Array kept;
  for (json::Value& action : actions) {
    const std::string identity = identity_of(action);
    if (const auto known = entered.find(identity); known != entered.end()) {
      entered.erase(known);
    } else if (const auto old = repeated.find(identity); old != repeated.end()) {
      repeated.erase(old);
      continue;
    } else if (has_unknown_repeated && !has_unknown_entered) {
      continue;
    }
    kept.push_back(std::move(action));
  }
  actions = std::move(kept);
}

// Reads from a State of XState 4 what the answer itself does not say, except for the actions.
Result<bool> read_state4(const json::Object& state, json::Array& actions,
                         const std::optional<json::Value>& before, Reader& reader) {
  const json::Value* const executed = member(state, "actions");
  const json::Value* const meta = member(state, "meta");
  const bool has_executed =
      executed != nullptr && executed->is_array() && !executed->get_array().empty();
  const bool has_meta = meta != nullptr && meta->is_object() && !meta->get_object().empty();
  // An unhandled event leaves a state without a configuration, and therefore without metadata.
  const bool is_handled =
      !before || is_true(member(state, "changed")) || has_executed || has_meta || !actions.empty();
  if (!is_handled) return false;
  if (before && before->is_object()) drop_repeated(actions, state, before->get_object());
  if (has_executed) {
    for (const json::Value& action : executed->get_array()) {
      if (json::string_at(action, {"type"}).starts_with("xstate.")) {
        HANGAR_TRY(reader.add(action));
      }
    }
  }
  return true;
}

Result<> read_timers(const json::Object& answer, Reader& reader) {
  const json::Value* const cancelled = member(answer, "timersCancelled");
  if (cancelled != nullptr && cancelled->is_array()) {
    for (const json::Value& id : cancelled->get_array()) {
      if (!id.is_string()) return no_answer("timersCancelled has something that is not text");
      HANGAR_TRY(reader.cancel_timer(std::string(id.get_string())));
    }
  }
  const json::Value* const started = member(answer, "timersStarted");
  if (started == nullptr || !started->is_array()) return {};
  for (const json::Value& timer : started->get_array()) {
    const json::Object* const object = timer.if_object();
    if (object == nullptr) return no_answer("timersStarted has something that is not an object");
    const json::Value* const replaces = member(*object, "replaces");
    HANGAR_TRY(reader.start_timer(text_member(*object, "id"), member(*object, "delay"),
                                  member(*object, "event"),
                                  replaces == nullptr || is_true(replaces)));
  }
  return {};
}

Result<std::vector<Actor>> actors_of(const json::Object& answer) {
  std::vector<Actor> actors;
  const json::Value* const list = member(answer, "actors");
  if (list == nullptr || !list->is_array()) return actors;
  for (const json::Value& one : list->get_array()) {
    const json::Object* const object = one.if_object();
    if (object == nullptr) return no_answer("actors has something that is not an object");
    const json::Value* const value = member(*object, "value");
    const json::Value* const definition = member(*object, "definition");
    Actor actor{.id = HANGAR_TRY(actor_id(member(*object, "actor"))),
                .value = value == nullptr ? "null" : json::dump(*value),
                .status = bounded(text_member(*object, "status")),
                .definition = definition == nullptr ? std::string() : json::dump(*definition)};
    if (actor.id.empty()) return no_answer("actors has one without the id of an actor");
    actors.push_back(std::move(actor));
  }
  return actors;
}

Result<std::vector<std::string>> read_stopped(const json::Object& answer) {
  std::vector<std::string> stopped;
  const json::Value* const list = member(answer, "actorsStopped");
  if (list == nullptr || !list->is_array()) return stopped;
  for (const json::Value& one : list->get_array())
    stopped.push_back(HANGAR_TRY(actor_id(&one)));
  return stopped;
}

std::optional<ErrorKind> fault_kind(std::string_view name) {
  for (const ErrorKind kind : {ErrorKind::InvalidInput, ErrorKind::GuestFault,
                               ErrorKind::LimitExceeded, ErrorKind::NotFound}) {
    if (name == name_of(kind)) return kind;
  }
  return std::nullopt;
}

// The answer as an object; if it contains an error, that error.
Result<json::Value> parse_answer(std::string_view text) {
  if (text.size() > limits::kMachineAnswerBytesMax) {
    return fail(ErrorKind::LimitExceeded,
                fmt::format("the machine's answer has {} bytes, the most is {}", text.size(),
                            limits::kMachineAnswerBytesMax));
  }
  Result<json::Value> answer = json::parse(text);
  if (!answer) {
    return no_answer(fmt::format("the machine's answer is not JSON ({}): {}",
                                 answer.error().message(),
                                 text.empty() ? "it is empty" : bounded(text.substr(0, 100))));
  }
  const json::Object* const object = answer->if_object();
  if (object == nullptr) return no_answer("the machine's answer is not a JSON object");
  if (const json::Value* const fault = member(*object, "fault"); fault != nullptr) {
    const std::optional<ErrorKind> kind = fault_kind(json::string_at(*fault, {"kind"}));
    return fail(kind.value_or(ErrorKind::GuestFault),
                bounded(json::string_at(*fault, {"message"})));
  }
  if (const json::Value* const error = member(*object, "error");
      error != nullptr && !error->is_null() && member(*object, "newState") == nullptr) {
    return no_answer(fmt::format(
        "the machine answered with an error: {}",
        bounded(error->is_string() ? std::string_view(error->get_string()) : json::dump(*error))));
  }
  return answer;
}

}  // namespace

Result<Step> read_answer(std::string_view text, std::string_view before) {
  json::Value parsed = HANGAR_TRY(parse_answer(text));
  json::Object& answer = parsed.get_object();
  const auto found = answer.find("newState");
  if (found == answer.end() || found->value().is_null()) {
    return no_answer("the machine's answer has no newState");
  }
  json::Value& state = found->value();
  Step step;
  Reader reader(step);

  json::Array actions;
  if (json::Value* const given = answer.if_contains("actions"); given != nullptr) {
    if (!given->is_array() && !given->is_null()) {
      return no_answer("the machine's actions are not an array");
    }
    if (given->is_array()) actions = std::move(given->get_array());
  }
  json::Object* const object = state.if_object();
  const json::Value* const handled = member(answer, "handled");
  std::optional<json::Value> state_before;
  if (handled == nullptr && !before.empty()) {
    if (Result<json::Value> read = json::parse(before)) state_before = *std::move(read);
  }
  const bool is_foreign4 = handled == nullptr && object != nullptr && is_state4(*object);
  if (is_foreign4) {
    step.is_handled = HANGAR_TRY(read_state4(*object, actions, state_before, reader));
  } else {
    step.is_handled = handled == nullptr || is_true(handled);
  }
  if (object != nullptr && is_state4(*object)) {
    // A step needs less than a whole State: not the state before it, nor the actions.
    object->erase("history");
    (*object)["actions"] = json::Array();
  }
  if (step.is_handled) {
    for (const json::Value& action : actions)
      HANGAR_TRY(reader.add(action));
    HANGAR_TRY(read_timers(answer, reader));
    step.actors_stopped = HANGAR_TRY(read_stopped(answer));
  }
  step.actors = HANGAR_TRY(actors_of(answer));
  const bool is_same = handled == nullptr && state_before && step.actions.empty() &&
                       step.timers_started.empty() && step.timers_cancelled.empty() &&
                       json::equal(state, *state_before);
  if (is_same) step.is_handled = false;

  const json::Value* value = member(answer, "value");
  if (value == nullptr && object != nullptr) value = member(*object, "value");
  if (value == nullptr && state.is_string()) value = &state;
  step.value = value == nullptr ? "null" : json::dump(*value);
  const json::Value* const final_said = member(answer, "final");
  step.is_final = final_said != nullptr
                      ? is_true(final_said)
                      : object != nullptr && (is_true(member(*object, "done")) ||
                                              text_member(*object, "status") == "done");
  const json::Value* output = member(answer, "output");
  if (output == nullptr && object != nullptr) output = member(*object, "output");
  if (step.is_final && output != nullptr && !output->is_null()) step.output = json::dump(*output);

  step.state = step.is_handled || before.empty() ? json::dump(state) : std::string(before);
  if (step.state.size() > limits::kWorkflowStateBytesMax) {
    return fail(
        ErrorKind::LimitExceeded,
        fmt::format("the machine's state has {} bytes, the most is {}: keep large documents "
                    "in objects of their own and their names in the context",
                    step.state.size(), limits::kWorkflowStateBytesMax));
  }
  return step;
}

Result<std::vector<Actor>> read_actors(std::string_view text) {
  const json::Value answer = HANGAR_TRY(parse_answer(text));
  return actors_of(answer.get_object());
}

Result<std::string> read_definition(std::string_view text) {
  return json::dump(HANGAR_TRY(parse_answer(text)));
}

Result<std::string> restorable(const std::string& state) {
  HANGAR_TRY(check_json(state, "the state"));
  json::Value parsed = HANGAR_TRY(json::parse(state));
  json::Object* const object = parsed.if_object();
  if (object == nullptr || !is_state4(*object)) return state;
  object->emplace("configuration", json::Array());
  object->emplace("transitions", json::Array());
  return json::dump(parsed);
}

Result<> check_json(std::string_view text, std::string_view what) {
  const Result<json::Value> parsed = json::parse(text);
  if (parsed) return {};
  return no_answer(fmt::format("{} is not JSON ({})", what, parsed.error().message()));
}

}  // namespace hangar::abi::statemachine
