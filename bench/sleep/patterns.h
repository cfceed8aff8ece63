// Patterns of events, generated from a seed: when each of a number of operators wakes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hangar::bench_sleep {

struct Pattern {
  std::string name;
  double seconds = 0;                      // Of simulated time.
  std::vector<std::vector<double>> wakes;  // Of each operator, in seconds, ascending.
  std::vector<std::string> groups;         // The namespace of each operator.
  std::vector<bool> is_counted;            // Others are only there to be followed.
};

// periodic, periodic_noise, changing, bursty, diurnal, nightly, dependent.
[[nodiscard]] std::vector<Pattern> all_patterns(std::uint64_t seed);

// Days of one operator: it resyncs every ten minutes, gets bursts of events while people work, and
// has a job at 02:00.
[[nodiscard]] Pattern several_at_once(std::uint64_t seed);

}  // namespace hangar::bench_sleep
