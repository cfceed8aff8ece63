// Counts and times about workflows. docs/operating/workflows.md names the metrics.
#pragma once

#include "base/metrics.h"
#include "base/time.h"
#include "workflows/ledger.h"

#include <string_view>

namespace hangar::workflows {

struct Instruments {
  explicit Instruments(Metrics& metrics_in);

  void action_ended(const PendingAction& action, std::string_view outcome, WallTime now) const;
  void action_retried(const PendingAction& action) const;

  Metrics& metrics;
  Counter& transitions;
  Counter& ignored;
  Histogram& step_seconds;
  Histogram& state_seconds;
};

}  // namespace hangar::workflows
