#include "foresight/rhythm.h"

#include "foresight/moment.h"
#include "foresight/spread.h"

#include <algorithm>
#include <cmath>

namespace hangar::foresight {

namespace {

// Shorter periods are not worth a plan; beats are searched with this tolerance.
constexpr float kPeriodMin = 0.02F;
constexpr float kTolerance = 0.05F;
// How many consecutive beats make a period.
constexpr int kBeats = 3;
// How fast the estimates adapt.
constexpr float kPhaseWeight = 0.4F;
constexpr float kPeriodWeight = 0.1F;

}  // namespace

void Rhythm::learn(Instant at, float since_last) {
  std::shift_right(gaps_.begin(), gaps_.end(), 1);
  gaps_.front() = std::max(since_last, 1e-6F);
  if (period_ <= 0) return search(at);

  const float passed = seconds_between(beat_, at);
  const float beats = std::round(passed / period_);
  const float off = passed - beats * period_;
  const float tolerance = std::max(2 * spread_of(error_), kTolerance * period_);
  if (beats >= 1 && std::abs(off) <= std::min(tolerance, period_ / 4)) {
    beat_ += to_duration(beats * period_ + kPhaseWeight * off);
    period_ += kPeriodWeight * off / beats;
    error_ = smoothed_error(error_, off);
    missed_ = 0;
    return;
  }
  // A wake between two beats. The beats since the last one may have been missed.
  if (passed > (static_cast<float>(missed_) + 1.5F) * period_) ++missed_;
  if (passed > static_cast<float>(kMissedMax) * period_ || missed_ >= kMissedMax) {
    period_ = 0;
    missed_ = 0;
    search(at);
  }
}

// Finds the shortest period with a wake at this time and at each of the three beats before it.
void Rhythm::search(Instant at) {
  std::array<float, std::tuple_size_v<decltype(gaps_)> + 1> ages{};
  std::size_t count = 1;
  for (const float gap : gaps_) {
    if (gap <= 0) break;
    ages[count] = ages[count - 1] + gap;
    ++count;
  }
  for (std::size_t first = 1; first < count; ++first) {
    const float candidate = ages[first];
    if (candidate < kPeriodMin) continue;
    float last = 0;
    float error = 0;
    int found = 0;
    for (; found < kBeats; ++found) {
      const float expected = last + candidate;
      float nearest = kNever;
      for (std::size_t index = 1; index < count; ++index) {
        if (std::abs(ages[index] - expected) < std::abs(nearest - expected)) nearest = ages[index];
      }
      if (std::abs(nearest - expected) > kTolerance * candidate) break;
      error += std::abs(nearest - expected);
      last = nearest;
    }
    if (found < kBeats) continue;
    period_ = last / static_cast<float>(kBeats);
    error_ = error / static_cast<float>(kBeats);
    beat_ = at;
    missed_ = 0;
    return;
  }
}

std::optional<Guess> Rhythm::guess(Instant idle_since) const {
  if (period_ <= 0) return std::nullopt;
  const float spread = spread_of(error_);
  const float passed = seconds_between(beat_, idle_since);
  // A beat whose time has come but not gone is still expected, unless it is the last one.
  const float beats = std::max(1.0F, std::ceil((passed - spread) / period_));
  return Guess{.at = beats * period_ - passed, .spread = spread};
}

}  // namespace hangar::foresight
