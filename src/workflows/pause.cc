#include "workflows/pause.h"

#include <algorithm>
#include <chrono>

namespace hangar::workflows {

Result<reconcile::Outcome> outcome_of(const Pause& pause, WallTime now) {
  std::optional<WallTime> until = pause.until;
  if (pause.look_again) until = until ? std::min(*until, *pause.look_again) : *pause.look_again;
  const bool is_terminal = pause.retry && pause.retry->kind() == ErrorKind::InvalidInput;
  if (pause.retry && !(is_terminal && until)) return std::unexpected(*pause.retry);
  if (!until) return reconcile::Outcome{};
  // Rather a millisecond late than a moment early; never zero, because that would mean the
  // back-off.
  const Duration delay = std::max<Duration>(*until - now, Duration::zero());
  return reconcile::Outcome{.requeue_after = delay + std::chrono::milliseconds(1)};
}

}  // namespace hangar::workflows
