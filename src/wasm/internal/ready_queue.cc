#include "wasm/internal/ready_queue.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace hangar::wasm::internal {

void ReadyQueue::push(Place place, Key module, Step step) {
  {
    const std::scoped_lock lock(mutex_);
    // One that has used up its slice has no advantage of its module.
    if (place != Place::New) module = nullptr;
    (place == Place::Begun ? begun_ : others_).push_back({module, std::move(step)});
  }
  workers_.submit([this] { run_next(); });
}

bool ReadyQueue::is_contended() const {
  const std::scoped_lock lock(mutex_);
  return !begun_.empty() || !others_.empty();
}

void ReadyQueue::run_next() {
  take()();
}

ReadyQueue::Step ReadyQueue::take() {
  const std::scoped_lock lock(mutex_);
  if (!begun_.empty()) {
    Step step = std::move(begun_.front().step);
    begun_.pop_front();
    return step;
  }
  auto next = others_.begin();
  if (last_ != nullptr && in_a_row_ < kInARowMax) {
    const auto same = std::ranges::find(others_, last_, &Waiting::module);
    if (same != others_.end()) next = same;
  }
  const bool goes_on = next->module == last_ && in_a_row_ < kInARowMax;
  in_a_row_ = goes_on ? in_a_row_ + 1 : 1;
  last_ = next->module;
  Step step = std::move(next->step);
  others_.erase(next);
  return step;
}

}  // namespace hangar::wasm::internal
