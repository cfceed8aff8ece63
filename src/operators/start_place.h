// A place among the operators that start, and a second one among the large ones for a guest that is
// large. Both are held until this is destroyed, but no longer than the wait of limits.h, since a
// guest may never be idle. Loop thread only.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "budget/consumer.h"
#include "budget/fair_slots.h"
#include "io/loop.h"
#include "io/task.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>

namespace hangar::operators {

class StartPlace {
 public:
  // All of it outlives the place.
  struct Among {
    io::Loop& loop;
    budget::FairSlots& all;
    budget::FairSlots& large;
  };
  // Waits for the place of a guest whose module takes `memory_bytes_min`. Errors as for
  // FairSlots::acquire().
  [[nodiscard]] static io::Task<Result<std::unique_ptr<StartPlace>>> acquire(
      Among among, budget::Consumer consumer, std::uint64_t memory_bytes_min, std::stop_token stop);

  // From acquire().
  StartPlace(io::Loop& loop, budget::FairSlots::Slot slot,
             std::optional<budget::FairSlots::Slot> of_large, Duration for_long);
  StartPlace(const StartPlace&) = delete;
  StartPlace& operator=(const StartPlace&) = delete;
  ~StartPlace() = default;

  // Until the wait is over.
  [[nodiscard]] bool is_held() const { return slot_.has_value(); }

 private:
  std::optional<budget::FairSlots::Slot> slot_;
  std::optional<budget::FairSlots::Slot> of_large_;
  const io::Loop::Timer until_;
};

}  // namespace hangar::operators
