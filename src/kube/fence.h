// Whether this process may write to the cluster at this moment.
//
// A leader may write as long as its Lease is certainly its own. Each request checks the fence right
// before its first byte goes to the socket and before each further piece of its body, because the
// process may have been stopped for any time since it decided to write: by a signal, by a cgroup
// that has used up its processor time, by a suspended machine.
//
// Two clocks are compared; the first one to reach its time shuts the fence. The clock since boot
// does not jump, but stands still in a virtual machine that is paused or moved. The time of day
// catches up once something corrects it; until then nothing in the machine can know, and the API
// server's preconditions are the safeguard (docs/operating/host.md). If someone sets the time of
// day forward, the fence is shut until the next renewal of the Lease.
#pragma once

#include "base/time.h"

#include <atomic>

namespace hangar::kube {

// Any thread.
class Fence {
 public:
  // Opens the fence, which starts shut, until the earlier of the two times.
  void open_until(Instant at, WallTime wall_at);
  void shut();

  [[nodiscard]] bool is_open() const;

 private:
  std::atomic<Instant> until_ = Instant::min();
  std::atomic<WallTime> wall_until_ = WallTime::min();
};

}  // namespace hangar::kube
