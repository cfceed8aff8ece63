#include "workflows/recording.h"

#include "io/loop.h"
#include "kube/object.h"
#include "recorder/limits.h"
#include "workflows/workflow.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace hangar::workflows {

namespace {

using recorder::Waking;

// The event of a workflow's start. Records show it as a timer that the start has set.
constexpr std::string_view kBeginning = "PROVISION";

// "signal APPROVED", "action FAILURE of APPLY#3".
std::string text_of_event(const QueuedEvent& event) {
  std::string text(name_of(event.origin));
  text.front() = static_cast<char>(text.front() | 0x20);  // A letter.
  text += ' ';
  text += type_of(event.body);
  if (event.origin != Origin::Action) return text;
  return text + fmt::format(" of {}#{}", json::string_at(event.body, {"action"}),
                            json::int_at(event.body, {"actionId"}));
}

// Actions are numbered from 1; timers have higher numbers.
std::uint64_t number_of_action(std::int64_t id) {
  return static_cast<std::uint64_t>(id);
}

}  // namespace

StepRecording::StepRecording(reconcile::GuestRecorder& recorder, const json::Value& workflow,
                             std::string user)
    : GuestRecording(recorder, workflow_resource(), workflow), user_(std::move(user)) {}

StepRecording::Woken StepRecording::by_beginning() const {
  Woken woken{.waking = {.cause = Waking::Cause::Added}};
  woken.waking.object.version = object().version;
  woken.group = object().group;
  woken.kind = object().kind;
  woken.namespace_ = object().namespace_;
  woken.name = object().name;
  woken.traceparent = traceparent();
  return woken;
}

StepRecording::Woken StepRecording::by_question() {
  return {.waking = {.cause = Waking::Cause::Event}, .event = "host hangar.probe"};
}

StepRecording::Woken StepRecording::by_event(const QueuedEvent& event, const Ledger& ledger) const {
  Woken woken{.waking = {.cause = Waking::Cause::Event}, .event = text_of_event(event)};
  Waking& waking = woken.waking;
  switch (event.origin) {
    case Origin::Signal:
      if (event.source == 0) break;
      woken = by_beginning();
      woken.event = text_of_event(event);
      waking.cause = Waking::Cause::Modified;
      waking.object.version = event.source;
      break;
    case Origin::Change: {
      const auto is_it = [&event](const OwnedResource& resource) {
        return resource.name == json::string_at(event.body, {"resourceName"}) &&
               resource.kind == json::string_at(event.body, {"kind"}) &&
               resource.api_version == json::string_at(event.body, {"apiVersion"});
      };
      const auto found = std::ranges::find_if(ledger.resources, is_it);
      if (found == ledger.resources.end()) break;
      const bool is_gone = found->seen == kSeenDeleted;
      waking.cause = is_gone ? Waking::Cause::Deleted : Waking::Cause::Modified;
      waking.object.version = kube::parse_version(found->seen).value_or(0);
      woken.group = kube::make_gvk(found->api_version, found->kind).group;
      woken.kind = found->kind;
      woken.namespace_ = found->namespace_;
      woken.name = found->name;
      break;
    }
    case Origin::Action: {
      const std::int64_t action = json::int_at(event.body, {"actionId"});
      const auto request = ends_.find(action);
      const bool is_known = request != ends_.end();
      waking.cause = is_known ? Waking::Cause::Answer : Waking::Cause::Timer;
      waking.id = is_known ? request->second : number_of_action(action);
      break;
    }
    case Origin::Timer:
      if (event.source == 0) break;
      waking.cause = Waking::Cause::Timer;
      waking.id = event.source;
      break;
    case Origin::Host:
      waking.cause = Waking::Cause::Timer;
      waking.id = number_of_timer(kBeginning);
      break;
    case Origin::Timeout:
      break;
  }
  return woken;
}

void StepRecording::stepped(const Woken& woken, const Stepped& stepped, const Ledger& ledger) {
  if (!is_on()) return;
  Waking waking = woken.waking;
  waking.event = woken.event;
  waking.traceparent = woken.traceparent;
  waking.object = {.group = woken.group,
                   .kind = woken.kind,
                   .namespace_ = woken.namespace_,
                   .name = woken.name,
                   .version = woken.waking.object.version};
  recorder::Turn turn{.user = user_,
                      .module = stepped.module_sha256,
                      .began = stepped.began,
                      .ended = io::Loop::now(),
                      .cpu = stepped.cost.cpu,
                      .memory_bytes = stepped.cost.memory_bytes,
                      .wakings = {waking}};
  const auto set = [&turn](std::uint64_t number, Duration after) {
    if (turn.timers.size() < recorder::kTimersMax) {
      turn.timers.push_back({.id = number, .after = after});
    } else {
      ++turn.timers_left_out;
    }
  };
  if (stepped.step == nullptr) {
    turn.outcome = recorder::Turn::Outcome::Failed;
  } else {
    if (ledger.is_finished()) turn.outcome = recorder::Turn::Outcome::Completed;
    turn.printed_bytes = stepped.step->log.size();
    if (waking.cause == Waking::Cause::Added) set(number_of_timer(kBeginning), {});
    for (const PendingAction& action : ledger.outbox) {
      if (action.id >= stepped.actions_from) set(number_of_action(action.id), {});
    }
    for (const abi::statemachine::Timer& timer : stepped.step->timers_started)
      set(number_of_timer(timer.id), timer.delay);
  }
  const std::uint64_t number = record(std::move(turn));
  if (stepped.step == nullptr) return;
  for (const PendingAction& action : ledger.outbox) {
    if (action.id >= stepped.actions_from) turns_.emplace(action.id, number);
  }
}

void StepRecording::without_step(const Waking& waking, std::string_view module_sha256) {
  const Instant now = io::Loop::now();
  record({.user = user_, .module = module_sha256, .began = now, .ended = now, .wakings = {waking}});
}

void StepRecording::action_begins(const PendingAction& action, std::string_view module_sha256) {
  if (!is_on()) return;
  ends_.erase(action.id);
  forget_request();
  if (const auto known = turns_.find(action.id); known != turns_.end()) {
    return go_back_to(known->second);
  }
  const std::string text = fmt::format("{}#{} continues", action.type, action.id);
  without_step({.cause = Waking::Cause::Timer, .id = number_of_action(action.id), .event = text},
               module_sha256);
  turns_.emplace(action.id, turn());
}

void StepRecording::action_ended(const PendingAction& action) {
  if (last_request() != 0) ends_.insert_or_assign(action.id, last_request());
}

void StepRecording::status_begins(std::string_view module_sha256) {
  if (is_on() && turn() == 0) {
    without_step(woken_by_object(Waking::Cause::Modified), module_sha256);
  }
}

}  // namespace hangar::workflows
