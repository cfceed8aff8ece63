// Counts and times about workflows. docs/operating/workflows.md names the metrics.
#pragma once

#include "base/metrics.h"
#include "base/time.h"
#include "workflows/ledger.h"

#include <cstdint>

namespace hangar::workflows {

// How an action ended.
enum class ActionOutcome : std::uint8_t { Done, Failed, Skipped };

// The counts of actions begin at zero, by type and outcome, before the first action: the rate of a
// count that begins with its first action would leave that one out.
struct Instruments {
  explicit Instruments(Metrics& metrics_in);

  void action_ended(const PendingAction& action, ActionOutcome outcome, WallTime now) const;
  void action_retried(const PendingAction& action) const;

  Metrics& metrics;
  Counter& transitions;
  Counter& ignored;
  Histogram& step_seconds;
  Histogram& state_seconds;
};

}  // namespace hangar::workflows
