#include "foresight/gap_histogram.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace hangar::foresight {

namespace {

// Classes end at 2 ms, 3.2 ms and so on to 4,260 s; the last one has all longer gaps.
constexpr float kFirstEnd = 0.002F;
constexpr float kRatio = 1.6F;
// With more gaps than this, the older ones count half.
constexpr unsigned kCountedMax = 240;
constexpr unsigned kCountedMin = 8;
// A guest with longer gaps than this is not kept in memory for its next wake.
constexpr float kKeepMax = 600;

std::size_t class_of(float gap, std::size_t classes) {
  if (gap <= kFirstEnd) return 0;
  const float index = std::ceil(std::log(gap / kFirstEnd) / std::log(kRatio));
  return std::min(static_cast<std::size_t>(std::max(index, 0.0F)), classes - 1);
}

}  // namespace

void GapHistogram::learn(float gap) {
  ++counts_[class_of(gap, kClasses)];
  const unsigned sum = std::accumulate(counts_.begin(), counts_.end(), 0U);
  if (sum < kCountedMax) return;
  for (std::uint8_t& count : counts_)
    count = static_cast<std::uint8_t>(count / 2U);
}

std::optional<float> GapHistogram::best_keep(const Terms& terms) const {
  const auto all = static_cast<float>(std::accumulate(counts_.begin(), counts_.end(), 0U));
  if (all < static_cast<float>(kCountedMin)) return std::nullopt;
  const float missed = terms.missed();
  float best = 0;
  float best_cost = all * missed;
  float covered = 0;
  float covered_cost = 0;
  float end = kFirstEnd;
  for (std::size_t index = 0; index + 1 < kClasses && end <= kKeepMax; ++index, end *= kRatio) {
    const auto count = static_cast<float>(counts_[index]);
    covered += count;
    covered_cost += count * (index == 0 ? end / 2 : end / std::sqrt(kRatio));
    const float cost = covered_cost + (all - covered) * (end + missed);
    if (cost < best_cost) {
      best_cost = cost;
      best = end;
    }
  }
  return best;
}

}  // namespace hangar::foresight
