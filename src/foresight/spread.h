// The spread of guesses from their mean absolute error.
#pragma once

#include <cmath>

namespace hangar::foresight {

// Of normally distributed errors, 98 % are below three times their mean. The constant is the
// inaccuracy of the loop's own timers.
[[nodiscard]] inline float spread_of(float mean_error) {
  return 3 * mean_error + 0.004F;
}

[[nodiscard]] inline float smoothed_error(float mean_error, float error) {
  constexpr float kWeight = 0.1F;
  return mean_error + kWeight * (std::abs(error) - mean_error);
}

}  // namespace hangar::foresight
