#include "operators/output_allowance.h"

#include <utility>

namespace hangar::operators {

namespace {

// One turn of a guest that prints as much as it may, in lines so short that what stands before each
// is several times as long.
constexpr double kBurstSeconds = 4;

}  // namespace

OutputAllowance::OutputAllowance(std::uint64_t bytes_per_second)
    : bytes_({.per_second = static_cast<double>(bytes_per_second),
              .burst = kBurstSeconds * static_cast<double>(bytes_per_second)}) {}

bool OutputAllowance::take(std::size_t line_bytes, Instant now) {
  return bytes_.try_take(now, static_cast<double>(line_bytes));
}

std::optional<std::uint64_t> OutputAllowance::tell_dropped(Instant now) {
  if (dropped_bytes_ == 0 || !tells_.try_take(now)) return std::nullopt;
  return std::exchange(dropped_bytes_, 0);
}

}  // namespace hangar::operators
