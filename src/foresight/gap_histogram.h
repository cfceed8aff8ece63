// The lengths of recent gaps, in classes of a logarithmic scale. From them follows how long a guest
// should stay in memory when only the distribution of gaps is known.
#pragma once

#include "foresight/plan.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace hangar::foresight {

class GapHistogram {
 public:
  void learn(float gap);
  // The time to stay in memory that would have been cheapest for these gaps, late wakes included.
  // std::nullopt: too few gaps are known.
  [[nodiscard]] std::optional<float> best_keep(const Terms& terms) const;

 private:
  static constexpr std::size_t kClasses = 32;
  std::array<std::uint8_t, kClasses> counts_{};
};

}  // namespace hangar::foresight
