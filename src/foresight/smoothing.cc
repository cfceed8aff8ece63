#include "foresight/smoothing.h"

#include "foresight/spread.h"

#include <cmath>

namespace hangar::foresight {

namespace {

constexpr float kMeanWeight = 0.25F;
constexpr std::uint8_t kSmoothedMin = 3;

}  // namespace

void Smoothing::learn(float gap) {
  const float off = gap - mean_;
  if (count_ < kSmoothedMin) {
    ++count_;
    mean_ += off / static_cast<float>(count_);
    if (count_ > 1) error_ += (std::abs(off) - error_) / static_cast<float>(count_ - 1);
    return;
  }
  mean_ += kMeanWeight * off;
  error_ = smoothed_error(error_, off);
}

std::optional<Guess> Smoothing::guess() const {
  if (count_ < kSmoothedMin) return std::nullopt;
  return Guess{.at = mean_, .spread = spread_of(error_)};
}

}  // namespace hangar::foresight
