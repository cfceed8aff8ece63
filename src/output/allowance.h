// How much a guest may print over time. A turn's output has a bound of its own, but a guest may
// take as many turns as it likes, and its output goes to the host's log, which all operators share.
#pragma once

#include "base/time.h"
#include "base/token_bucket.h"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace hangar::output {

// This rate on average, and bursts of four times that.
[[nodiscard]] TokenBucket::Options output_rate(std::uint64_t bytes_per_second);

class Allowance {
 public:
  // Allows output_rate().
  explicit Allowance(std::uint64_t bytes_per_second);

  // Whether a line is kept. `line_bytes` is its length as `hangar logs` prints it, prefix included,
  // so that a flood of short lines counts too.
  [[nodiscard]] bool take(std::size_t line_bytes, Instant now);

  // Counts output of the guest that is not kept.
  void drop(std::uint64_t bytes) { dropped_bytes_ += bytes; }
  // How much was dropped since the last answer. Answers once a second at most, because the line
  // that reports it would be a flood of its own; has_untold() while there is more to report.
  [[nodiscard]] std::optional<std::uint64_t> tell_dropped(Instant now);
  [[nodiscard]] bool has_untold() const { return dropped_bytes_ > 0; }

  // As if the guest had never printed.
  [[nodiscard]] bool is_as_new(Instant now) {
    return !has_untold() && bytes_.is_full(now) && tells_.is_full(now);
  }

 private:
  TokenBucket bytes_;
  TokenBucket tells_{{.per_second = 1, .burst = 1}};
  std::uint64_t dropped_bytes_ = 0;
};

}  // namespace hangar::output
