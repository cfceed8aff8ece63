#include "workflows/verdict.h"

#include "reconcile/conditions.h"
#include "reconcile/guest_waits.h"
#include "workflows/actions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::workflows {

namespace {

using reconcile::Condition;
using reconcile::ConditionStatus;

// The problem that the ledger itself reveals.
std::optional<Problem> problem_of(const Ledger& ledger) {
  const auto unknown = std::ranges::find_if(
      ledger.outbox, [](const PendingAction& action) { return !kind_of(action.type); });
  if (unknown != ledger.outbox.end()) {
    return Problem{
        .reason = "UnknownAction",
        .message = fmt::format(
            "the machine requested {}#{}, an action type that this host does not support; it waits "
            "for a host that does. Supported types: {}. Skip it with the annotation "
            "workflows.example.com/skip-action={}",
            unknown->type, unknown->id, fmt::join(action_types(), ", "), unknown->id)};
  }
  if (!ledger.failure.empty() && !ledger.is_finished()) {
    return Problem{
        .reason = "FailureIgnored",
        .message = fmt::format(
            "an action failed, and the state {} does not know the event that says so: {}. Give the "
            "machine a transition for it and migrate, or send an event that the state knows",
            ledger.value, ledger.failure)};
  }
  return std::nullopt;
}

// "in state provisioning (worker#1: making)"
std::string place_of(const Ledger& ledger) {
  constexpr std::size_t kActorsShownMax = 5;
  std::vector<std::string> actors;
  for (const RunningActor& actor : ledger.actors) {
    if (!actor.status.empty()) continue;
    if (actors.size() == kActorsShownMax) {
      actors.emplace_back("...");
      break;
    }
    actors.push_back(fmt::format("{}: {}", actor.id, actor.value));
  }
  return actors.empty() ? fmt::format("in state {}", ledger.value)
                        : fmt::format("in state {} ({})", ledger.value, fmt::join(actors, ", "));
}

Condition ready_of(const Ledger& ledger) {
  Condition condition{.status = ConditionStatus::False};
  if (!ledger.is_finished()) {
    condition.reason = ledger.has_begun() ? "InProgress" : "NotStarted";
    condition.message =
        ledger.has_begun() ? place_of(ledger) : std::string("the machine has not started");
  } else if (ledger.has_failed) {
    condition.reason = "Failed";
    condition.message = fmt::format("finished in state {}: {}", ledger.value, ledger.failure);
  } else {
    condition.status = ConditionStatus::True;
    condition.reason = "Completed";
    condition.message = fmt::format("finished in state {}", ledger.value);
  }
  return condition;
}

Condition progress_of(const Ledger& ledger) {
  Condition condition{.type = "Progressing", .status = ConditionStatus::True};
  const auto failing = std::ranges::find_if(
      ledger.outbox, [](const PendingAction& action) { return action.attempts > 0; });
  if (failing != ledger.outbox.end()) {
    condition.reason = "Retrying";
    condition.message =
        fmt::format("{}#{} failed {} {}: {}", failing->type, failing->id, failing->attempts,
                    failing->attempts == 1 ? "time" : "times", failing->last_error);
  } else if (!ledger.outbox.empty()) {
    std::vector<std::string> actions;
    for (const PendingAction& action : ledger.outbox)
      actions.push_back(fmt::format("{}#{}", action.type, action.id));
    condition.reason = "Acting";
    condition.message =
        fmt::format("{}, carrying out {}", place_of(ledger), fmt::join(actions, ", "));
    const auto hindered = std::ranges::find_if(
        ledger.outbox, [](const PendingAction& action) { return !action.last_error.empty(); });
    if (hindered != ledger.outbox.end()) {
      condition.message +=
          fmt::format("; {}#{}: {}", hindered->type, hindered->id, hindered->last_error);
    }
  } else if (ledger.is_finished()) {
    condition.status = ConditionStatus::False;
    condition.reason = "Finished";
    condition.message = "nothing is left to do";
  } else if (!ledger.ignored.empty()) {
    condition.reason = "Waiting";
    condition.message = fmt::format(
        "{}, waiting for an event; the state ignored {}: send one that it knows "
        "(hangar workflow show)",
        place_of(ledger), ledger.ignored);
  } else {
    condition.reason = "Waiting";
    condition.message = fmt::format("{}, waiting for an event", place_of(ledger));
  }
  return condition;
}

}  // namespace

void put_conditions(json::Value& status, const Ledger& ledger,
                    const std::optional<Problem>& problem, std::int64_t generation, WallTime now) {
  const std::optional<Problem> own = problem ? problem : problem_of(ledger);
  Condition ready = ready_of(ledger);
  Condition progressing = progress_of(ledger);
  Condition stalled{.type = std::string(reconcile::kStalled),
                    .status = ConditionStatus::False,
                    .reason = "NotStalled",
                    .message = "nothing stops the workflow"};
  if (own && own->reason == kStatusInvalid && !ledger.has_begun()) {
    ready.reason = own->reason;
    ready.message = "the status cannot be read";
  }
  if (own && own->is_waiting) {
    progressing.status = ConditionStatus::True;
    progressing.reason = own->reason;
    progressing.message = own->message;
  } else if (own) {
    stalled.status = ConditionStatus::True;
    stalled.reason = own->reason;
    stalled.message = own->message;
    progressing.status = ConditionStatus::False;
    progressing.reason = "Stalled";
    progressing.message = own->message;
  }
  for (Condition* const condition : {&ready, &progressing, &stalled}) {
    condition->observed_generation = generation;
    reconcile::set_condition(status, *condition, now);
  }
  // A workflow that decides does not wait. A host that was killed may have left the condition
  // behind.
  reconcile::put_no_wait(status, generation, now);
  if (status.is_object()) status.get_object()["observedGeneration"] = generation;
}

}  // namespace hangar::workflows
