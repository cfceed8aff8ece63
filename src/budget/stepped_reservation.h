// A reservation of one consumer that changes often, by little at a time.
#pragma once

#include "budget/accounts.h"
#include "budget/consumer.h"

#include <cstdint>
#include <optional>

namespace hangar::budget {

// Counts in whole steps, so that few changes reach the accounts, and amounts below the first step
// are neither counted nor refused. Any thread, one at a time.
class SteppedReservation {
 public:
  // The accounts outlive this object.
  SteppedReservation(Accounts& accounts, Consumer consumer, std::uint64_t step_bytes);

  // Changes the amount to `bytes`. A shortage changes nothing; a smaller amount never causes one.
  [[nodiscard]] std::optional<Shortage> set(std::uint64_t bytes);

 private:
  Accounts& accounts_;
  Consumer consumer_;
  std::uint64_t step_bytes_;
  std::optional<Reservation> held_;  // Unset: no bytes are counted.
};

}  // namespace hangar::budget
