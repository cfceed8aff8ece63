#include "budget/stepped_reservation.h"

#include "budget/accounts.h"
#include "budget/consumer.h"

#include <cstdint>
#include <optional>
#include <utility>

namespace hangar::budget {

SteppedReservation::SteppedReservation(Accounts& accounts, Consumer consumer,
                                       std::uint64_t step_bytes)
    : accounts_(accounts), consumer_(std::move(consumer)), step_bytes_(step_bytes) {}

std::optional<Shortage> SteppedReservation::set(std::uint64_t bytes) {
  const std::uint64_t counted = bytes - bytes % step_bytes_;
  if (counted == (held_ ? held_->bytes() : 0)) return std::nullopt;
  if (counted == 0) {
    held_.reset();
    return std::nullopt;
  }
  if (held_) {
    const auto resized = held_->resize(counted);
    return resized ? std::nullopt : std::optional(resized.error());
  }
  auto reserved = accounts_.reserve(consumer_, counted);
  if (!reserved) return reserved.error();
  held_.emplace(*std::move(reserved));
  return std::nullopt;
}

}  // namespace hangar::budget
