// Finds a period with a fixed phase among an operator's wakes: a resync, a cron job, a poll. Other
// wakes in between do not disturb it.
#pragma once

#include "base/time.h"
#include "foresight/plan.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace hangar::foresight {

class Rhythm {
 public:
  // The operator woke `since_last` seconds after its previous wake.
  void learn(Instant at, float since_last);
  // The next beat after `idle_since`. std::nullopt: no period is known.
  [[nodiscard]] std::optional<Guess> guess(Instant idle_since) const;

 private:
  void search(Instant at);

  Instant beat_;                 // Estimated time of the last beat.
  std::array<float, 8> gaps_{};  // Gaps between wakes, the latest first. Zero: none.
  float period_ = 0;             // Zero: none is known.
  float error_ = 0;              // Mean absolute error of the beats.
  std::uint8_t missed_ = 0;      // Consecutive beats without a wake.
  static constexpr std::uint8_t kMissedMax = 3;
};

}  // namespace hangar::foresight
