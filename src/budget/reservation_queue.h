// Waits for bytes of an Accounts until others have released theirs.
#pragma once

#include "base/fair_queue.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "budget/equal_parts.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

namespace hangar::budget {

// Whenever bytes become free, the waiters are tried in the order of a FairQueue, and each that fits
// gets its bytes; a waiter for many bytes does not block waiters for few.
//
// Nor do these take for ever what the large one waits for. From time to time, what becomes free is
// set aside for the first waiter that lacks bytes of all together, until it has them, if EqualParts
// allow it that. That is bounded in time, since those who hold bytes may keep them.
//
// Loop thread; outlives its waiters, except for tasks that are never resumed, and is the only
// listener of its accounts.
class ReservationQueue {
 public:
  struct Times {
    Duration patience = std::chrono::seconds(2);    // Before bytes are set aside, and in between.
    Duration aside_max = std::chrono::seconds(20);  // That they are.
  };

  ReservationQueue(io::Loop& loop, Accounts& accounts)
      : ReservationQueue(loop, accounts, Times{}) {}
  ReservationQueue(io::Loop& loop, Accounts& accounts, Times times);
  ReservationQueue(const ReservationQueue&) = delete;
  ReservationQueue& operator=(const ReservationQueue&) = delete;
  ~ReservationQueue();

  // Receives the shortage of waiters without an `on_wait` of their own. Unset it before what it
  // refers to is destroyed.
  void set_on_shortage(std::function<void(const Consumer&, const Shortage&)> on_shortage) {
    on_shortage_ = std::move(on_shortage);
  }
  // Called when a wait of the consumer begins or ends, with waits() as it is from then on. Unset it
  // likewise.
  void set_on_wait(std::function<void(const Consumer&)> on_wait) { on_wait_ = std::move(on_wait); }

  // Returns at once if there is room. LimitExceeded if there never can be. Cancelled when a stop is
  // requested first. `on_wait` receives the reason before the wait begins: the caller may ask
  // others to make room.
  [[nodiscard]] io::Task<Result<Reservation>> reserve(
      Consumer consumer, std::uint64_t bytes, std::stop_token stop,
      std::function<void(const Shortage&)> on_wait = {});

  [[nodiscard]] Accounts& accounts() const { return accounts_; }
  // All that wait, with what was short when they began to.
  using Waits = std::multimap<Consumer, Shortage>;
  [[nodiscard]] const Waits& waits() const { return waits_; }
  // Of those that wait because bytes of the host are short (Tenant::host()), or of that tenant, the
  // one that lacks the most; null: none does.
  [[nodiscard]] const Shortage* largest_wait(const Tenant& short_of) const;
  // Between those that hold bytes and those that lack bytes of all together.
  [[nodiscard]] Contest contest() const;
  [[nodiscard]] std::size_t waiting_count() const { return queue_.size(); }
  [[nodiscard]] std::size_t waiting_count(const Tenant& tenant) const {
    return queue_.waiting_count(tenant);
  }

 private:
  struct Waiting {
    std::uint64_t id;
    std::uint64_t bytes;
    io::OneShot<std::optional<Reservation>> reserved;  // None: cancelled.
  };
  // Shared with the threads that free bytes: this object may be destroyed before their posts run.
  struct Wakeup;

  // By what they lack, of what is short.
  using Lacking = std::multimap<std::uint64_t, Shortage>;

  void serve();
  [[nodiscard]] std::expected<Reservation, Shortage> try_reserve(const Consumer& consumer,
                                                                 const Waiting& waiting);
  // Looks again after `time`, while something waits.
  void look_after(Duration time);
  void set_aside();
  void end_aside();
  // Whether the limits of its own leave it so much.
  [[nodiscard]] bool may_have(const Tenant& tenant, std::uint64_t bytes) const;

  io::Loop& loop_;
  Accounts& accounts_;
  const Times times_;
  FairQueue<Waiting> queue_;
  std::uint64_t last_id_ = 0;
  std::optional<std::uint64_t> aside_for_;  // Of the waiter that bytes are set aside for.
  std::optional<io::Loop::Timer> look_;
  std::function<void(const Consumer&, const Shortage&)> on_shortage_;
  std::function<void(const Consumer&)> on_wait_;
  Waits waits_;
  std::map<Tenant, Lacking> lacking_;
  const std::shared_ptr<Wakeup> wakeup_;
};

}  // namespace hangar::budget
