#include "workflows/instruments.h"

#include "base/seconds.h"
#include "workflows/actions.h"

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::workflows {

namespace {

// Seconds to a month: states last as long as people need.
std::vector<double> long_buckets() {
  return {0.1, 1, 10, 60, 600, 3600, 21600, 86400, 604800, 2592000};
}

constexpr std::string_view kOtherType = "other";

// Only types of the catalogue, so that machines cannot create series.
std::string_view label_of(std::string_view type) {
  return kind_of(type) ? type : kOtherType;
}

std::string_view label_of(ActionOutcome outcome) {
  switch (outcome) {
    case ActionOutcome::Done:
      return "done";
    case ActionOutcome::Failed:
      return "failed";
    case ActionOutcome::Skipped:
      return "skipped";
  }
  return {};
}

Counter& actions_ended(Metrics& metrics, std::string_view type, ActionOutcome outcome) {
  return metrics.counter(
      "hangar_workflow_actions_total", "Actions that ended, by type and outcome.",
      {{"action", std::string(type)}, {"outcome", std::string(label_of(outcome))}});
}

}  // namespace

Instruments::Instruments(Metrics& metrics_in)
    : metrics(metrics_in),
      transitions(metrics.counter("hangar_workflow_transitions_total",
                                  "Transitions of workflows' machines.")),
      ignored(metrics.counter("hangar_workflow_events_ignored_total",
                              "Events that the state they came in did not know.")),
      step_seconds(metrics.histogram("hangar_workflow_step_seconds",
                                     "How long a machine took to decide.", latency_buckets())),
      state_seconds(metrics.histogram("hangar_workflow_state_seconds",
                                      "How long workflows stayed in a state.", long_buckets())) {
  std::vector<std::string_view> types = action_types();
  types.push_back(kOtherType);
  for (const std::string_view type : types) {
    for (const auto outcome : {ActionOutcome::Done, ActionOutcome::Failed, ActionOutcome::Skipped})
      actions_ended(metrics, type, outcome);
  }
}

void Instruments::action_ended(const PendingAction& action, ActionOutcome outcome,
                               WallTime now) const {
  const std::string type(label_of(action.type));
  actions_ended(metrics, type, outcome).add();
  metrics
      .histogram("hangar_workflow_action_seconds",
                 "From the asking for an action to its end, retries included.", long_buckets(),
                 {{"action", type}})
      .observe(in_seconds(now - action.requested_at));
}

void Instruments::action_retried(const PendingAction& action) const {
  metrics
      .counter("hangar_workflow_action_retries_total", "Attempts that failed and are repeated.",
               {{"action", std::string(label_of(action.type))}})
      .add();
}

}  // namespace hangar::workflows
