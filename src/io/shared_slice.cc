#include "io/shared_slice.h"

#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"

#include <cstdint>
#include <memory>
#include <utility>

namespace hangar::io {

bool SharedSlice::is_used_up_by(std::uint64_t units) const {
  state_->used_units += units;
  state_->schedule();
  return state_->used_units >= state_->units_max;
}

Task<void> SharedSlice::turn() const {
  return wait(state_);
}

Task<void> SharedSlice::wait(std::shared_ptr<State> state) {
  if (state->waiting.empty() && state->used_units < state->units_max) co_return;
  const OneShot<bool> turn(state->loop);
  state->waiting.push_back(turn);
  state->schedule();
  (void)co_await turn.wait();
}

void SharedSlice::State::schedule() {
  if (std::exchange(is_scheduled, true)) return;
  loop.post([self = shared_from_this()] { self->on_round(); });
}

void SharedSlice::State::on_round() {
  is_scheduled = false;
  used_units = 0;
  if (waiting.empty()) return;
  waiting.front().set(true);
  waiting.pop_front();
  // The loop runs posted work in order, so the next round comes after the task that was just
  // resumed.
  schedule();
}

}  // namespace hangar::io
