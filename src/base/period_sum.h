// Counts events in the last complete period.
#pragma once

#include "base/time.h"

#include <cstdint>

namespace hangar {

// Counts in consecutive periods, with time as a parameter. The first period starts with the
// first count.
class PeriodSum {
 public:
  explicit PeriodSum(Duration period) : period_(period) {}

  void add(Instant now, std::uint64_t count) {
    roll(now);
    current_ += count;
  }
  // The sum of the last complete period; zero during the first one.
  [[nodiscard]] std::uint64_t last(Instant now) const {
    PeriodSum rolled = *this;
    rolled.roll(now);
    return rolled.last_;
  }
  // True when nothing was counted in the last complete period, nor since.
  [[nodiscard]] bool is_zero(Instant now) const {
    PeriodSum rolled = *this;
    rolled.roll(now);
    return rolled.last_ == 0 && rolled.current_ == 0;
  }
  // When the period of the last count began; the epoch when nothing was counted.
  [[nodiscard]] Instant began() const { return began_; }

 private:
  void roll(Instant now) {
    if (began_ == Instant()) began_ = now;
    if (now < began_ + period_) return;
    const bool is_next = now < began_ + 2 * period_;
    last_ = is_next ? current_ : 0;
    current_ = 0;
    began_ = is_next ? began_ + period_ : now;
  }

  Duration period_;
  Instant began_;
  std::uint64_t current_ = 0;
  std::uint64_t last_ = 0;
};

}  // namespace hangar
