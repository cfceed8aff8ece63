// Runs a loop until a condition is true, for tests of objects on the loop.
#pragma once

#include "io/loop.h"

#include <chrono>
#include <functional>

namespace hangar::testing {

// False when the condition does not become true in time. It may become true without an event on the
// loop, so it is also checked every few milliseconds.
[[nodiscard]] inline bool wait(io::Loop& loop, const std::function<bool()>& condition,
                               std::chrono::seconds at_most = std::chrono::seconds(60)) {
  bool is_over = false;
  const auto limit = loop.after(at_most, [&is_over] { is_over = true; });
  io::Loop::Timer tick;
  std::function<void()> look;
  look = [&] { tick = loop.after(std::chrono::milliseconds(10), [&look] { look(); }); };
  look();
  loop.run_until([&] { return is_over || condition(); });
  return !is_over;
}

// Waits until all tasks that were spawned on the loop have finished.
[[nodiscard]] inline bool wait_for_end_of_tasks(io::Loop& loop) {
  return wait(loop, [&loop] { return loop.spawned_count() == 0; });
}

}  // namespace hangar::testing
