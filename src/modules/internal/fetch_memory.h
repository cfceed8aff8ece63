// What one fetch may hold of memory.
#pragma once

#include "base/result.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "budget/reservation_queue.h"
#include "io/task.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

namespace hangar::modules {

// How large a module is, is known when its bytes arrive: too late to wait, because what has arrived
// is memory already. So a fetch that cannot have what it turns out to need gives up everything,
// waits for that much, and begins again. Nobody waits who holds memory or a place in a line.
// Loop thread.
class FetchMemory {
 public:
  // `queue` may be null: nothing is counted then. Otherwise it outlives this.
  FetchMemory(budget::ReservationQueue* queue, budget::Consumer consumer)
      : queue_(queue), consumer_(std::move(consumer)) {}

  // Waits for what was refused, if anything was; `on_wait` is told why. Errors as
  // ReservationQueue::reserve().
  [[nodiscard]] io::Task<Result<>> wait(std::stop_token stop,
                                        std::function<void(const budget::Shortage&)> on_wait) {
    if (!is_short()) co_return Result<>();
    held_.reset();
    held_ = HANGAR_CO_TRY(
        co_await queue_->reserve(consumer_, wanted_bytes_, std::move(stop), std::move(on_wait)));
    co_return Result<>();
  }

  // From here on so many bytes in all. LimitExceeded where they cannot be had at once.
  [[nodiscard]] Result<> grow_to(std::uint64_t bytes) {
    if (queue_ == nullptr || bytes <= held_bytes()) return {};
    wanted_bytes_ = std::max(wanted_bytes_, bytes);
    if (!held_) held_ = queue_->accounts().reserve(consumer_, 0).value();  // Nothing always fits.
    if (const auto grown = held_->resize(bytes); !grown) {
      return fail(ErrorKind::LimitExceeded, to_text(grown.error()));
    }
    return {};
  }

  // As grow_to() of what will not be had before it is waited for.
  [[nodiscard]] Result<> refuse(std::uint64_t bytes) {
    wanted_bytes_ = std::max(wanted_bytes_, bytes);
    return is_short() ? Result<>(fail(ErrorKind::LimitExceeded, "needs more memory than it has"))
                      : Result<>();
  }

  // Something was refused, and has not been waited for.
  [[nodiscard]] bool is_short() const { return wanted_bytes_ > held_bytes(); }

  [[nodiscard]] std::uint64_t held_bytes() const { return held_ ? held_->bytes() : 0; }

 private:
  budget::ReservationQueue* const queue_;
  const budget::Consumer consumer_;
  std::uint64_t wanted_bytes_ = 0;
  std::optional<budget::Reservation> held_;
};

}  // namespace hangar::modules
