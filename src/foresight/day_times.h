// Times of the day (UTC) at which an operator wakes on several days: backups, reports, the start of
// a user's working day.
#pragma once

#include "base/time.h"
#include "foresight/plan.h"

#include <array>
#include <cstdint>
#include <optional>

namespace hangar::foresight {

class DayTimes {
 public:
  void learn(WallTime wall);
  // The next of these times. std::nullopt: none is known well enough.
  [[nodiscard]] std::optional<Guess> guess(WallTime idle_since) const;

 private:
  struct Entry {
    std::uint32_t centiseconds = 0;  // Time of the day.
    std::uint16_t error = 0;         // Mean absolute error, in centiseconds.
    std::uint8_t days = 0;           // On which it was seen, less those of other wakes. Zero: free.
    std::uint8_t last_day = 0;       // The day's number, modulo 256.
  };
  std::array<Entry, 5> entries_{};
};

}  // namespace hangar::foresight
