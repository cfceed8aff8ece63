#include "output/allowance.h"

#include <utility>

namespace hangar::output {

namespace {

// Enough for one turn of a guest that prints as much as it may, in lines so short that their
// prefixes are several times as long.
constexpr double kBurstSeconds = 4;

}  // namespace

TokenBucket::Options output_rate(std::uint64_t bytes_per_second) {
  const auto per_second = static_cast<double>(bytes_per_second);
  return {.per_second = per_second, .burst = kBurstSeconds * per_second};
}

Allowance::Allowance(std::uint64_t bytes_per_second) : bytes_(output_rate(bytes_per_second)) {}

bool Allowance::take(std::size_t line_bytes, Instant now) {
  return bytes_.try_take(now, static_cast<double>(line_bytes));
}

std::optional<std::uint64_t> Allowance::tell_dropped(Instant now) {
  if (dropped_bytes_ == 0 || !tells_.try_take(now)) return std::nullopt;
  return std::exchange(dropped_bytes_, 0);
}

}  // namespace hangar::output
