#include "io/event.h"

#include "base/result.h"
#include "io/task.h"

#include <list>
#include <stop_token>
#include <utility>

namespace hangar::io {

void Event::notify_all() {
  for (const OneShot<bool>& waiter : std::exchange(waiting_, {}))
    waiter.set(true);
}

Task<Result<>> Event::wait(std::stop_token stop) {
  const OneShot<bool> waiter(loop_);
  waiting_.push_back(waiter);
  bool notified = false;
  {
    const std::stop_callback on_stop(stop, [&waiter] { waiter.set(false); });
    notified = co_await waiter.wait();
  }
  if (!notified) {
    // Not notified, so it still stands in the list. The Event may not be gone: it would have
    // found a waiter.
    waiting_.remove_if([](const OneShot<bool>& other) { return other.is_set(); });
    co_return fail(ErrorKind::Cancelled, "stopping");
  }
  co_return Result<>();
}

Task<Semaphore::Slot> Semaphore::acquire() {
  if (free_ > 0) {
    --free_;
  } else {
    const OneShot<bool> waiter(loop_);
    waiting_.push_back(waiter);
    co_await waiter.wait();  // release() hands its slot over.
  }
  co_return Slot(*this);
}

void Semaphore::release() {
  if (waiting_.empty()) {
    ++free_;
    return;
  }
  const OneShot<bool> next = std::move(waiting_.front());
  waiting_.pop_front();
  next.set(true);
}

}  // namespace hangar::io
