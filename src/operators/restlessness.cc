#include "operators/restlessness.h"

#include "operators/limits.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>

namespace hangar::operators {

namespace {

using Seconds = std::chrono::duration<float>;

// Of a new gap in the period: a single late wake does not change what is told.
constexpr float kGapWeight = 0.125F;
// By how much the period may differ from what is told.
constexpr float kToldTolerance = 0.25F;
// Wakes by the timer that may be missing until it counts as stopped.
constexpr float kMissingMax = 3;

// The most that fits.
constexpr std::uint32_t kForNothingMax = (1U << 30) - 1;

// A guest that writes at every n-th wake gets one verdict for good: if its useful wakes lie far
// enough apart for it to begin, too few of them are among the last ones for it to end.
static_assert((limits::kRestlessUsefulWakes - 1) * (limits::kRestlessWakes + 1) >=
                  std::numeric_limits<std::uint32_t>::digits,
              "a verdict about a steady guest stays");

Duration to_two_digits(float seconds) {
  const double scale = std::pow(10, std::floor(std::log10(seconds)) - 1);
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(std::round(seconds / scale) * scale));
}

}  // namespace

void Restlessness::on_turn(const Turn& turn) {
  if (turn.has_event) is_timed_ = false;
  if (turn.has_event || !turn.has_timer) return;
  if (turn.at > ends_at()) {
    *this = Restlessness();
  } else if (is_timed_) {
    learn(Seconds(turn.at - woken_).count());
    if (has_worked_ || turn.is_settled) count(has_worked_);
  }
  woken_ = turn.at;
  is_timed_ = true;
  has_worked_ = false;
}

void Restlessness::learn(float gap) {
  period_ = period_ == 0 ? gap : period_ + kGapWeight * (gap - period_);
}

void Restlessness::count(bool is_useful) {
  useful_ = (useful_ << 1) | (is_useful ? 1U : 0U);
  for_nothing_ = is_useful ? 0 : std::min(for_nothing_ + 1U, kForNothingMax) & kForNothingMax;
  if (told_ == 0) {
    if (for_nothing_ < limits::kRestlessWakes ||
        static_cast<float>(for_nothing_) * period_ < Seconds(limits::kRestlessAfter).count()) {
      return;
    }
    told_ = period_;
    useful_ = 0;
  } else if (std::popcount(useful_) >= limits::kRestlessUsefulWakes) {
    told_ = 0;
  } else if (std::abs(period_ - told_) > kToldTolerance * told_) {
    told_ = period_;
  }
}

std::optional<Duration> Restlessness::period(Instant now) const {
  if (told_ == 0 || now > ends_at()) return std::nullopt;
  return to_two_digits(told_);
}

Instant Restlessness::ends_at() const {
  return woken_ + pause_max();
}

Duration Restlessness::pause_max() const {
  if (period_ == 0) return limits::kRestlessPauseMax;
  const std::chrono::duration<double> missing(kMissingMax * period_);
  return std::clamp<Duration>(std::chrono::duration_cast<Duration>(missing), limits::kRestlessAfter,
                              limits::kRestlessPauseMax);
}

}  // namespace hangar::operators
