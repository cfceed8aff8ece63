#include "kube/fence.h"

#include "base/time.h"
#include "io/loop.h"

namespace hangar::kube {

void Fence::open_until(Instant at, WallTime wall_at) {
  // A shut fence opens with the second write, so both times must be known by then.
  wall_until_ = wall_at;
  until_ = at;
}

void Fence::shut() {
  until_ = Instant::min();
}

bool Fence::is_open() const {
  return io::Loop::now() < until_.load() && io::Loop::wall_now() < wall_until_.load();
}

}  // namespace hangar::kube
