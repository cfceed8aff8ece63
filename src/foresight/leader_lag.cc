#include "foresight/leader_lag.h"

#include "foresight/moment.h"
#include "foresight/spread.h"

#include <algorithm>
#include <cmath>

namespace hangar::foresight {

namespace {

// Later wakes are not caused by the leader's.
constexpr float kLagMax = 5;
constexpr std::uint8_t kTrustMin = 3;
constexpr std::uint8_t kTrustMax = 8;
constexpr std::uint8_t kMistrust = 2;
// Tolerance of a lag in addition to a quarter of it: the variation that the loop's own work causes.
constexpr float kToleranceMin = 0.02F;

}  // namespace

void LeaderLag::learn(Instant at, std::span<const RecentWake> recent) {
  if (leader_ != 0) {
    const auto found = std::ranges::find(recent, leader_, &RecentWake::id);
    const float lag = found == recent.end() ? kNever : seconds_between(found->at, at);
    const float off = lag - lag_;
    if (lag <= kLagMax && (trust_ == 1 || std::abs(off) <= std::max(lag_ / 4, kToleranceMin))) {
      error_ = trust_ == 1 ? std::abs(off) : smoothed_error(error_, off);
      lag_ += (trust_ == 1 ? 0.5F : 0.2F) * off;
      trust_ = std::min<std::uint8_t>(static_cast<std::uint8_t>(trust_ + 1U), kTrustMax);
      return;
    }
    // Random wakes of another operator fit now and then, so misses have to count for more.
    trust_ = trust_ > kMistrust ? static_cast<std::uint8_t>(trust_ - kMistrust) : 0;
    if (trust_ > 0) return;
    leader_ = 0;
  }
  // Tries one candidate at a time: a wrong one loses its trust within two wakes.
  std::size_t usable = 0;
  while (usable < recent.size() && seconds_between(recent[usable].at, at) <= kLagMax)
    ++usable;
  if (usable == 0) return;
  const RecentWake& candidate = recent[tries_++ % usable];
  leader_ = candidate.id;
  lag_ = seconds_between(candidate.at, at);
  error_ = 0;
  trust_ = 1;
}

std::optional<Guess> LeaderLag::guess() const {
  if (trust_ < kTrustMin) return std::nullopt;
  return Guess{.at = lag_, .spread = spread_of(error_)};
}

}  // namespace hangar::foresight
