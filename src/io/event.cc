#include "io/event.h"

#include "base/result.h"
#include "io/task.h"

#include <list>
#include <memory>
#include <stop_token>
#include <utility>

namespace hangar::io {

void Event::notify_all() {
  for (const OneShot<bool>& waiter : std::exchange(*waiting_, {}))
    waiter.set(true);
}

Task<Result<>> Event::wait(std::stop_token stop) {
  if (stop.stop_requested()) co_return fail(ErrorKind::Cancelled, "stopping");
  const OneShot<bool> waiter(loop_);
  const auto waiting = waiting_;
  waiting->push_back(waiter);
  bool notified = false;
  {
    const std::stop_callback on_stop(stop, [&waiter] { waiter.set(false); });
    notified = co_await waiter.wait();
  }
  if (!notified) {
    waiting->remove_if([](const OneShot<bool>& other) { return other.is_set(); });
    co_return fail(ErrorKind::Cancelled, "stopping");
  }
  co_return Result<>();
}

Task<Semaphore::Slot> Semaphore::acquire() {
  co_return *co_await acquire(std::stop_token());  // Never requested.
}

Task<Result<Semaphore::Slot>> Semaphore::acquire(std::stop_token stop) {
  if (stop.stop_requested()) co_return fail(ErrorKind::Cancelled, "stopping");
  if (free_ > 0) {
    --free_;
    co_return Slot(*this);
  }
  const OneShot<bool> waiter(loop_);
  const auto place = waiting_.insert(waiting_.end(), waiter);
  const std::stop_callback on_stop(stop, [this, &waiter, place] {
    if (waiter.is_set()) return;  // It has the slot already and is not in the list any more.
    waiting_.erase(place);
    waiter.set(false);
  });
  // release() passes its slot to this task.
  if (!co_await waiter.wait()) co_return fail(ErrorKind::Cancelled, "stopping");
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
