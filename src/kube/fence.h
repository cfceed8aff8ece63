// Whether this process may write to the cluster at this moment.
//
// A leader may, until the time up to which its Lease is its own for sure. Requests ask right before
// their first byte goes to the socket and before each further piece of their body, because the
// process may have been stopped for any time since it decided to write: by a signal, by a cgroup
// that is out of processor time, by a suspended machine.
//
// Two clocks have to agree. The one since boot does not jump, but stands still in a virtual machine
// that is paused or moved. The time of day does not, once something corrects it; until then nobody
// in the machine can know, and the API server's preconditions have to do (docs/operating/host.md).
// A time of day that is set forward by hand shuts the fence until the next renewal of the Lease.
#pragma once

#include "base/time.h"

#include <atomic>

namespace hangar::kube {

// Any thread.
class Fence {
 public:
  // Shut until this is called, and from the earlier of the two on.
  void open_until(Instant at, WallTime wall_at);
  void shut();

  [[nodiscard]] bool is_open() const;

 private:
  std::atomic<Instant> until_ = Instant::min();
  std::atomic<WallTime> wall_until_ = WallTime::min();
};

}  // namespace hangar::kube
