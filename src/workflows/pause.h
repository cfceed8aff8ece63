// The outcome of a reconcile that has nothing left to do. No I/O.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "reconcile/controller.h"

#include <optional>

namespace hangar::workflows {

struct Pause {
  std::optional<WallTime> until = {};       // The next timer or retry of the ledger.
  std::optional<WallTime> look_again = {};  // When to look at the cluster even without a change.
  std::optional<Error> retry = {};          // The reason to retry even if nothing happens.
};
// Deadlines count even while the machine cannot decide: an error that is not retried is returned
// only if there is no time to wait for.
[[nodiscard]] Result<reconcile::Outcome> outcome_of(const Pause& pause, WallTime now);

}  // namespace hangar::workflows
