// Predicts the next gap by exponential smoothing of the last ones.
#pragma once

#include "foresight/plan.h"

#include <cstdint>
#include <optional>

namespace hangar::foresight {

class Smoothing {
 public:
  void learn(float gap);
  // std::nullopt before the third gap.
  [[nodiscard]] std::optional<Guess> guess() const;

 private:
  float mean_ = 0;
  float error_ = 0;  // Mean absolute error of the guesses.
  std::uint8_t count_ = 0;
};

}  // namespace hangar::foresight
