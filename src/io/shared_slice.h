// Limits how much work several tasks together do on the loop thread before they yield to all other
// tasks. See slice.h for one task alone.
#pragma once

#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"

#include <cstdint>
#include <list>
#include <memory>

namespace hangar::io {

// Work is counted in units that the caller chooses and not in time, so that the same work is cut at
// the same places on every machine. Loop thread. Copies share the slice.
class SharedSlice {
 public:
  // `units_max` is at least one; it is the work between two rounds of the loop.
  SharedSlice(Loop& loop, std::uint64_t units_max)
      : state_(std::make_shared<State>(loop, units_max)) {}

  // Counts work. True: the slice is used up, and the task must await turn() before it does more.
  [[nodiscard]] bool is_used_up_by(std::uint64_t units) const;

  // Waits until the slice has units left, in the order of the calls; returns at once if it
  // has some.
  [[nodiscard]] Task<void> turn() const;

 private:
  struct State : std::enable_shared_from_this<State> {
    State(Loop& loop_in, std::uint64_t units_max_in) : loop(loop_in), units_max(units_max_in) {}

    void schedule();
    void on_round();

    Loop& loop;
    const std::uint64_t units_max;
    std::uint64_t used_units = 0;  // In this round.
    bool is_scheduled = false;
    std::list<OneShot<bool>> waiting;
  };

  static Task<void> wait(std::shared_ptr<State> state);

  std::shared_ptr<State> state_;
};

}  // namespace hangar::io
