// What a reconcile returns once nothing is left to do now. No I/O.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "reconcile/controller.h"

#include <optional>

namespace hangar::workflows {

struct Pause {
  std::optional<WallTime> until = {};       // What the ledger waits for: a timer, a retry.
  std::optional<WallTime> look_again = {};  // When to look at the cluster without news from it.
  std::optional<Error> retry = {};          // Why to retry although nothing happens.
};
// Deadlines are kept although the machine cannot decide: an error that is not retried counts only
// if there is no time to wait for.
[[nodiscard]] Result<reconcile::Outcome> outcome_of(const Pause& pause, WallTime now);

}  // namespace hangar::workflows
