#include "airways/conversion_memory.h"

#include "airways/review_slots.h"
#include "base/result.h"
#include "budget/accounts.h"
#include "budget/reservation_queue.h"
#include "io/task.h"

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

namespace hangar::airways {

io::Task<Result<std::optional<budget::Reservation>>> reserve_for_conversion(
    budget::ReservationQueue* memory, std::string airway, std::uint64_t bytes,
    std::stop_token stop) {
  if (memory == nullptr) co_return std::nullopt;
  Result<budget::Reservation> held =
      co_await memory->reserve(conversion_consumer(airway), bytes, std::move(stop));
  if (held) co_return *std::move(held);
  if (held.error().kind() == ErrorKind::LimitExceeded) {
    co_return std::unexpected(std::move(held).error().in("the objects are too large to convert"));
  }
  co_return fail(ErrorKind::Unavailable,
                 "other conversions hold the memory of this one; try again in a moment");
}

}  // namespace hangar::airways
