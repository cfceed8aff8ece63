// A point in time on both clocks: the monotonic clock and the wall clock.
#pragma once

#include "base/time.h"

namespace hangar::foresight {

struct Moment {
  Instant at;
  WallTime wall;
};

// Seconds as a float are exact to 5 ms after a day, which is enough to predict by.
[[nodiscard]] inline float seconds_between(Instant from, Instant to) {
  return std::chrono::duration<float>(to - from).count();
}
[[nodiscard]] inline Duration to_duration(float seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<float>(seconds));
}

}  // namespace hangar::foresight
