// Whether a timer of a guest wakes it for nothing, and how often.
//
// A wake by a timer lasts from the turn that the timer begins to the next one that a timer begins.
// It was for nothing if the guest asked for nothing in that time that may change something: a
// request that writes, whatever its answer, or one to another server than the API server. Turns
// with answers to its reads belong to the wake, so a guest that reads first and writes then has
// done something. A wake during which anything else arrived (a line of a watch, a review) says
// nothing about the timer and is not counted.
//
// The verdict is slow to change, so that a status that shows it is rarely written: it takes
// limits::kRestlessWakes wakes for nothing in a row to begin, and limits::kRestlessUsefulWakes
// useful ones among the last 32 to end. It ends, too, when the timer has stopped. No I/O.
#pragma once

#include "base/time.h"

#include <cstdint>
#include <optional>

namespace hangar::operators {

class Restlessness {
 public:
  // What a turn of the guest begins with.
  struct Turn {
    bool has_timer = false;
    bool has_event = false;   // Anything but timers and answers to requests of the guest.
    bool is_settled = false;  // All earlier requests of the guest were answered in earlier turns.
    Instant at;
  };
  void on_turn(const Turn& turn);
  // The guest has asked for something that may change something.
  void on_work() { has_worked_ = true; }
  // The guest starts anew. The verdict stays until its wakes tell another.
  void on_start() { is_timed_ = false; }

  // How often the timer wakes the guest for nothing, to two digits; it stays the same unless the
  // period changes by more than a quarter. Nothing: the guest is not restless.
  [[nodiscard]] std::optional<Duration> period(Instant now) const;
  // If no timer wakes the guest until then, it is no longer restless.
  [[nodiscard]] Instant ends_at() const;

 private:
  [[nodiscard]] Duration pause_max() const;
  void learn(float gap);
  void count(bool is_useful);

  Instant woken_;             // By a timer, last.
  float period_ = 0;          // In seconds, smoothed. Zero: not known yet.
  float told_ = 0;            // The same as the verdict has it. Zero: it is not restless.
  std::uint32_t useful_ = 0;  // The last wakes, a bit each, the last one lowest; set: useful.
  // Wakes in a row. A timer that is always due has some ten thousand in a second.
  std::uint32_t for_nothing_ : 30 = 0;
  bool is_timed_ : 1 = false;    // A timer has woken the guest, and nothing else since.
  bool has_worked_ : 1 = false;  // In this wake.
};

static_assert(sizeof(Restlessness) <= 24, "each operator has one; there are thousands");

}  // namespace hangar::operators
