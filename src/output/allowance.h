// Limits how much a guest prints over time. The output of one turn has its own bound, but a guest
// may take any number of turns, and its output goes to the host's log, which all operators share.
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

  // Counts output of the guest that the caller drops.
  void drop(std::uint64_t bytes) { dropped_bytes_ += bytes; }
  // How many bytes were dropped since the last report. Reports at most once a second, because the
  // line that reports it would itself be a flood; has_untold() is true while there is more
  // to report.
  [[nodiscard]] std::optional<std::uint64_t> tell_dropped(Instant now);
  [[nodiscard]] bool has_untold() const { return dropped_bytes_ > 0; }

  // True when the state is the same as if the guest had never printed.
  [[nodiscard]] bool is_as_new(Instant now) {
    return !has_untold() && bytes_.is_full(now) && tells_.is_full(now);
  }

 private:
  TokenBucket bytes_;
  TokenBucket tells_{{.per_second = 1, .burst = 1}};
  std::uint64_t dropped_bytes_ = 0;
};

}  // namespace hangar::output
