// Reserves the memory of a conversion's documents. While they are read and written they are values,
// which take several times the text; and the sender of a conversion is never known. Loop thread
// only.
#pragma once

#include "base/result.h"
#include "budget/accounts.h"
#include "budget/reservation_queue.h"
#include "io/task.h"

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>

namespace hangar::airways {

// Waits for `bytes` on the account of conversions, in turns between Airways. `memory` is the
// engine's; null: there is no bound, and nothing is reserved. Errors, with messages for the sender:
// LimitExceeded when that account can never hold as much; Unavailable when `stop` came first.
[[nodiscard]] io::Task<Result<std::optional<budget::Reservation>>> reserve_for_conversion(
    budget::ReservationQueue* memory, std::string airway, std::uint64_t bytes,
    std::stop_token stop);

}  // namespace hangar::airways
