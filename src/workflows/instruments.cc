#include "workflows/instruments.h"

#include "base/seconds.h"
#include "workflows/actions.h"

#include <chrono>
#include <string>
#include <vector>

namespace hangar::workflows {

namespace {

// Seconds to a month: states last as long as people need.
std::vector<double> long_buckets() {
  return {0.1, 1, 10, 60, 600, 3600, 21600, 86400, 604800, 2592000};
}

// Only types of the catalogue, so that machines cannot create series.
std::string label_of(const std::string& type) {
  return kind_of(type) ? type : "other";
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
                                      "How long workflows stayed in a state.", long_buckets())) {}

void Instruments::action_ended(const PendingAction& action, std::string_view outcome,
                               WallTime now) const {
  const std::string type = label_of(action.type);
  metrics
      .counter("hangar_workflow_actions_total", "Actions that ended, by type and outcome.",
               {{"action", type}, {"outcome", std::string(outcome)}})
      .add();
  metrics
      .histogram("hangar_workflow_action_seconds",
                 "From the asking for an action to its end, retries included.", long_buckets(),
                 {{"action", type}})
      .observe(in_seconds(now - action.requested_at));
}

void Instruments::action_retried(const PendingAction& action) const {
  metrics
      .counter("hangar_workflow_action_retries_total", "Attempts that failed and are repeated.",
               {{"action", label_of(action.type)}})
      .add();
}

}  // namespace hangar::workflows
