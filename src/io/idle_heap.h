// Returns free memory of the heap to the system once the process has been idle for a while.
//
// The allocations of a piece of work (answers, documents, buffers) are freed in small pieces all
// over the heap, and the allocator keeps the pages that become empty. Without this, ten thousand
// suspended objects would hold twice the memory that they need after a busy minute.
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

  // Call it after each piece of work.
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
