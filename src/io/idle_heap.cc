#include "io/idle_heap.h"

#include "base/time.h"
#include "io/loop.h"

#include <functional>
#include <utility>

namespace hangar::io {

IdleHeap::IdleHeap(Loop& loop, Duration quiet, std::function<void()> give_back)
    : loop_(loop), quiet_(quiet), give_back_(std::move(give_back)) {}

void IdleHeap::used() {
  used_at_ = Loop::now();
  if (!std::exchange(will_look_, true)) look_after(quiet_);
}

void IdleHeap::look_after(Duration delay) {
  timer_ = loop_.after(delay, [this] {
    const Duration idle = Loop::now() - used_at_;
    if (idle < quiet_) return look_after(quiet_ - idle);
    will_look_ = false;
    give_back_();
  });
}

}  // namespace hangar::io
