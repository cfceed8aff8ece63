#include "operators/output_allowance.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace hangar::operators {

namespace {

// One turn of a guest that prints as much as it may, in lines so short that what stands before each
// is several times as long.
constexpr double kBurstSeconds = 4;

}  // namespace

OutputAllowance::OutputAllowance(std::uint64_t bytes_per_second)
    : bytes_per_second_(static_cast<double>(bytes_per_second)),
      bytes_(kBurstSeconds * bytes_per_second_) {}

// A token bucket in bytes. It gives a line while there is anything in it, or one that is longer
// than the burst would never be kept.
bool OutputAllowance::take(std::size_t line_bytes, Instant now) {
  if (refilled_at_ == Instant()) refilled_at_ = now;
  if (now > refilled_at_) {
    const double seconds = std::chrono::duration<double>(now - refilled_at_).count();
    bytes_ = std::min(kBurstSeconds * bytes_per_second_, bytes_ + seconds * bytes_per_second_);
    refilled_at_ = now;
  }
  if (bytes_ < 1) return false;
  bytes_ -= static_cast<double>(line_bytes);
  return true;
}

std::optional<std::uint64_t> OutputAllowance::tell_dropped(Instant now) {
  if (dropped_bytes_ == 0 || !tells_.try_take(now)) return std::nullopt;
  return std::exchange(dropped_bytes_, 0);
}

}  // namespace hangar::operators
