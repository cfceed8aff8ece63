// The memory that one fetch may hold.
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

// The size of a module is known only when its bytes arrive: too late to wait, because they are in
// memory already. So a fetch that is refused the memory it needs releases everything, waits for
// that much, and starts over. A fetch never waits while it holds memory or a place in a queue. Loop
// thread.
class FetchMemory {
 public:
  // `queue` may be null: then nothing is counted. Otherwise it outlives this.
  FetchMemory(budget::ReservationQueue* queue, budget::Consumer consumer)
      : queue_(queue), consumer_(std::move(consumer)) {}

  // Waits for the memory that was refused, if any was; `on_wait` receives the reason. Errors as
  // for ReservationQueue::reserve().
  [[nodiscard]] io::Task<Result<>> wait(std::stop_token stop,
                                        std::function<void(const budget::Shortage&)> on_wait) {
    if (!is_short()) co_return Result<>();
    held_.reset();
    held_ = HANGAR_CO_TRY(
        co_await queue_->reserve(consumer_, wanted_bytes_, std::move(stop), std::move(on_wait)));
    co_return Result<>();
  }

  // Reserves up to `bytes` in all. LimitExceeded when they are not available at once.
  [[nodiscard]] Result<> grow_to(std::uint64_t bytes) {
    if (queue_ == nullptr || bytes <= held_bytes()) return {};
    wanted_bytes_ = std::max(wanted_bytes_, bytes);
    if (!held_) held_ = queue_->accounts().reserve(consumer_, 0).value();  // Zero bytes always fit.
    if (const auto grown = held_->resize(bytes); !grown) {
      return fail(ErrorKind::LimitExceeded, to_text(grown.error()));
    }
    return {};
  }

  // Like grow_to() for bytes that will not be granted without waiting.
  [[nodiscard]] Result<> refuse(std::uint64_t bytes) {
    wanted_bytes_ = std::max(wanted_bytes_, bytes);
    return is_short() ? Result<>(fail(ErrorKind::LimitExceeded, "needs more memory than it has"))
                      : Result<>();
  }

  // True when something was refused and has not been waited for.
  [[nodiscard]] bool is_short() const { return wanted_bytes_ > held_bytes(); }

  [[nodiscard]] std::uint64_t held_bytes() const { return held_ ? held_->bytes() : 0; }

 private:
  budget::ReservationQueue* const queue_;
  const budget::Consumer consumer_;
  std::uint64_t wanted_bytes_ = 0;
  std::optional<budget::Reservation> held_;
};

}  // namespace hangar::modules
