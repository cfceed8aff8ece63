#include "workflows/step_check.h"

#include "abi/statemachine/limits.h"
#include "base/limits.h"
#include "base/time.h"
#include "json/value.h"
#include "workflows/limits.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hangar::workflows {

namespace {

// Bound of all delayed events: together with the rest of a full status, it stays below the maximum
// of etcd.
constexpr std::size_t kTimerBytesMax = 64 * limits::kKiB;

std::unexpected<Error> too_much(std::string_view what, std::uint64_t has, std::uint64_t max) {
  return fail(
      ErrorKind::LimitExceeded,
      fmt::format("the machine's {}: {}, at most {} fit into a workflow's status", what, has, max));
}

// The size in the status.
std::size_t size_of(const json::Value& value) {
  return json::dump(value).size();
}

bool is_object_text(std::string_view text) {
  const Result<json::Value> value = json::parse(text);
  return value && value->is_object();
}

}  // namespace

Result<> check_step(const abi::statemachine::Step& step, const Ledger& ledger) {
  const auto wrong = [](std::string_view what) {
    return fail(ErrorKind::InvalidInput, fmt::format("the machine's answer: {}", what));
  };
  if (step.state.size() > limits::kWorkflowStateBytesMax) {
    return too_much("state has bytes", step.state.size(), limits::kWorkflowStateBytesMax);
  }
  const Result<json::Value> state = json::parse(step.state);
  if (!state || state->is_null()) return wrong("its state must be JSON");
  if (step.output && !json::parse(*step.output)) return wrong("its output must be JSON");
  if (step.output && step.output->size() > limits::kWorkflowOutputBytesMax) {
    return too_much("output has bytes", step.output->size(), limits::kWorkflowOutputBytesMax);
  }
  if (step.actors.size() > limits::kWorkflowActorsMax) {
    return too_much("actors", step.actors.size(), limits::kWorkflowActorsMax);
  }
  // It is written into the status too, and the host looks at each state that it names.
  if (step.value.size() > limits::kWorkflowValueBytesMax) {
    return too_much("state value has bytes", step.value.size(), limits::kWorkflowValueBytesMax);
  }
  const std::uint64_t path_bytes = state_path_bytes(readable_value(step.value));
  if (path_bytes > limits::kWorkflowPathBytesMax) {
    return too_much("states have paths of bytes", path_bytes, limits::kWorkflowPathBytesMax);
  }
  if (step.actors_stopped.size() > limits::kWorkflowStoppedMax) {
    return too_much("actors that have stopped", step.actors_stopped.size(),
                    limits::kWorkflowStoppedMax);
  }
  const auto asked = static_cast<std::int64_t>(step.actions.size());
  if (ledger.next_action > limits::kWorkflowNumberMax - asked ||
      ledger.transitions >= limits::kWorkflowNumberMax) {
    return fail(ErrorKind::LimitExceeded,
                fmt::format("the workflow's numbers are used up: it can have {} actions and as "
                            "many transitions; begin another workflow, or remove its status",
                            limits::kWorkflowNumberMax));
  }
  const std::size_t actions = ledger.outbox.size() + step.actions.size();
  if (actions > limits::kWorkflowOutboxMax) {
    return too_much("actions that have not ended", actions, limits::kWorkflowOutboxMax);
  }
  std::size_t bytes = 0;
  for (const PendingAction& action : ledger.outbox)
    bytes += size_of(action.params);
  for (const abi::statemachine::Action& action : step.actions) {
    if (action.type.empty()) return wrong("an action must have a type");
    if (!is_object_text(action.params)) {
      return wrong(fmt::format("the params of {} must be an object", action.type));
    }
    bytes += action.params.size();
  }
  if (bytes > limits::kWorkflowOutboxBytesMax) {
    return too_much("actions have bytes", bytes, limits::kWorkflowOutboxBytesMax);
  }
  const std::size_t timers = ledger.timers.size() + step.timers_started.size();
  if (timers > limits::kWorkflowTimersMax) {
    return too_much("delays that have not ended", timers, limits::kWorkflowTimersMax);
  }
  std::size_t timer_bytes = 0;
  for (const RunningTimer& timer : ledger.timers)
    timer_bytes += size_of(timer.event);
  for (const abi::statemachine::Timer& timer : step.timers_started) {
    timer_bytes += timer.event.size();
    const Result<json::Value> event = json::parse(timer.event);
    if (!event || type_of(*event).empty()) return wrong("a delayed event must have a type");
    if (timer.delay > Duration(limits::kWorkflowDelayMax)) {
      return wrong("a delay must be shorter than ten years");
    }
  }
  if (timer_bytes > kTimerBytesMax) {
    return too_much("delayed events have bytes", timer_bytes, kTimerBytesMax);
  }
  return {};
}

}  // namespace hangar::workflows
