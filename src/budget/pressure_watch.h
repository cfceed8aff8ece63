// Looks regularly how short memory is, once for everyone who can free some of it.
#pragma once

#include "base/time.h"
#include "budget/memory_pressure.h"
#include "io/loop.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace hangar::budget {

// Loop thread.
class PressureWatch {
 public:
  struct Listener {
    // What the listener's guests hold: PressureGuard advises how much of that to release. Empty:
    // the listener has none.
    std::function<std::uint64_t()> guest_bytes = {};
    // Called for each reading, also while there is enough memory. Does not begin or end a
    // Listening.
    std::function<void(const PressureGuard::Advice&)> on_advice;
  };
  // Ends with this object.
  class Listening;

  struct Options {
    MemoryGauge gauge = MemoryGauge();
    // A burst of wakes takes longer to fill a container.
    Duration interval = std::chrono::seconds(1);
  };
  // Looks from now on. The loop outlives this object.
  PressureWatch(io::Loop& loop, Options options);
  PressureWatch(const PressureWatch&) = delete;
  PressureWatch& operator=(const PressureWatch&) = delete;
  ~PressureWatch();  // Nobody listens.

  [[nodiscard]] std::unique_ptr<Listening> listen(Listener listener);

 private:
  void look_later();
  void look();

  io::Loop& loop_;
  const Options options_;
  PressureGuard guard_;
  std::vector<const Listener*> listeners_;  // In the order in which they began.
  io::Loop::Timer timer_;
};

class PressureWatch::Listening {
 public:
  Listening(PressureWatch& watch, Listener listener);
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;
  ~Listening();

 private:
  PressureWatch& watch_;
  const Listener listener_;
};

}  // namespace hangar::budget
