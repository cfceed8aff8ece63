// Gives what the heap has free back to the system, once there was nothing to do for a while.
//
// What a piece of work takes (answers, documents, buffers) is freed in small pieces all over the
// heap, and the allocator keeps the pages that they leave empty. Ten thousand objects that wait
// after a busy minute would hold as much again as they need.
#pragma once

#include "base/time.h"
#include "io/loop.h"

#include <functional>

namespace hangar::io {

// Loop thread.
class IdleHeap {
 public:
  IdleHeap(Loop& loop, Duration quiet, std::function<void()> give_back);
  IdleHeap(const IdleHeap&) = delete;
  IdleHeap& operator=(const IdleHeap&) = delete;

  // Some work has ended.
  void used();

 private:
  void look_after(Duration delay);

  Loop& loop_;
  const Duration quiet_;
  const std::function<void()> give_back_;
  Instant used_at_;
  bool will_look_ = false;
  Loop::Timer timer_;
};

}  // namespace hangar::io
