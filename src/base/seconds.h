// Durations in the unit that metrics use.
#pragma once

#include "base/time.h"

#include <chrono>

namespace hangar {

[[nodiscard]] inline double in_seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace hangar
