// Waiting for bytes of an Accounts until others have given theirs back.
#pragma once

#include "base/result.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "budget/fair_queue.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>

namespace hangar::budget {

// Whenever bytes become free, those that wait are looked at in the order of a FairQueue, and each
// that fits is given its bytes; one that needs much holds up nobody who needs little. Loop thread;
// outlives those that wait, but for tasks that never go on, and is the one that listens to its
// accounts.
class ReservationQueue {
 public:
  ReservationQueue(io::Loop& loop, Accounts& accounts);
  ReservationQueue(const ReservationQueue&) = delete;
  ReservationQueue& operator=(const ReservationQueue&) = delete;
  ~ReservationQueue();

  // Told of what waits without an `on_wait` of its own. Unset it before what it refers to goes.
  void set_on_shortage(std::function<void(const Shortage&)> on_shortage) {
    on_shortage_ = std::move(on_shortage);
  }

  // At once where there is room. LimitExceeded where there never can be. Cancelled when a stop is
  // requested first. `on_wait` is told why it waits, before it does: others may be asked to make
  // room.
  [[nodiscard]] io::Task<Result<Reservation>> reserve(
      Consumer consumer, std::uint64_t bytes, std::stop_token stop,
      std::function<void(const Shortage&)> on_wait = {});

  [[nodiscard]] Accounts& accounts() const { return accounts_; }
  [[nodiscard]] std::size_t waiting_count() const { return queue_.size(); }
  [[nodiscard]] std::size_t waiting_count(const Tenant& tenant) const {
    return queue_.waiting_count(tenant);
  }

 private:
  struct Waiting {
    std::uint64_t bytes;
    io::OneShot<std::optional<Reservation>> reserved;  // Nothing: cancelled.
  };
  // What threads that free bytes share with this object, which may go before what they post runs.
  struct Wakeup;

  void serve();

  io::Loop& loop_;
  Accounts& accounts_;
  FairQueue<Waiting> queue_;
  std::function<void(const Shortage&)> on_shortage_;
  const std::shared_ptr<Wakeup> wakeup_;
};

}  // namespace hangar::budget
