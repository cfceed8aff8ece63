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
#include <set>
#include <stop_token>
#include <utility>

namespace hangar::budget {

// Whenever bytes become free, the waiters are tried in the order of a FairQueue, and each that fits
// gets its bytes; a large waiter does not block small ones.
//
// Nor do small waiters starve a large one. From time to time, bytes that become free are set aside
// for the first waiter that is within its own limits and whose bytes EqualParts allow. This lasts
// until it has them, but for a bounded time, since other consumers may keep the bytes that
// they hold.
//
// Loop thread; outlives its waiters, except for tasks that are never resumed, and is the only
// listener of its accounts.
class ReservationQueue {
 public:
  struct Times {
    Duration patience = std::chrono::seconds(2);    // Until bytes are set aside (again).
    Duration aside_max = std::chrono::seconds(20);  // How long they are at most.
  };

  ReservationQueue(io::Loop& loop, Accounts& accounts)
      : ReservationQueue(loop, accounts, Times{}) {}
  ReservationQueue(io::Loop& loop, Accounts& accounts, Times times);
  ReservationQueue(const ReservationQueue&) = delete;
  ReservationQueue& operator=(const ReservationQueue&) = delete;
  ~ReservationQueue();

  // Receives the shortage of waiters that pass no `on_wait`. Unset it before the objects that it
  // refers to are destroyed.
  void set_on_shortage(std::function<void(const Consumer&, const Shortage&)> on_shortage) {
    on_shortage_ = std::move(on_shortage);
  }
  // Called after a wait of the consumer has started or ended; waits() already shows the change.
  // Unset it likewise.
  void set_on_wait(std::function<void(const Consumer&)> on_wait) { on_wait_ = std::move(on_wait); }

  // Returns at once if there is room. LimitExceeded if there never can be. Cancelled when a stop is
  // requested first. `on_wait` receives the reason before the wait starts, so that the caller can
  // make others release memory.
  [[nodiscard]] io::Task<Result<Reservation>> reserve(
      Consumer consumer, std::uint64_t bytes, std::stop_token stop,
      std::function<void(const Shortage&)> on_wait = {});

  [[nodiscard]] Accounts& accounts() const { return accounts_; }
  // All waiting consumers, each with the shortage at the start of its wait.
  using Waits = std::multimap<Consumer, Shortage>;
  [[nodiscard]] const Waits& waits() const { return waits_; }
  // Of the waiters that wait because the bytes of the host (Tenant::host()) or of that tenant are
  // short, the one that lacks the most; null: there is no such waiter.
  [[nodiscard]] const Shortage* largest_wait(const Tenant& short_of) const;
  // The bytes that tenants hold, and those that tenants lack because all together hold too many.
  [[nodiscard]] Contest contest() const;
  [[nodiscard]] std::size_t waiting_count() const { return queue_.size(); }
  [[nodiscard]] std::size_t waiting_count(const Tenant& tenant) const {
    return queue_.waiting_count(tenant);
  }

 private:
  struct Waiting {
    std::uint64_t id;
    std::uint64_t bytes;
    io::OneShot<std::optional<Reservation>> reserved;  // std::nullopt: cancelled.
  };
  // Shared with the threads that free bytes: this object may be destroyed before their posts run.
  struct Wakeup;

  // The waiters of one short level, by the bytes that they lack.
  using Lacking = std::multimap<std::uint64_t, Shortage>;

  void serve();
  // Whether one of the tenant's waiters may get its bytes.
  [[nodiscard]] bool may_serve(const Tenant& tenant) const;
  [[nodiscard]] std::expected<Reservation, Shortage> try_reserve(const Consumer& consumer,
                                                                 const Waiting& waiting);
  // Looks again after `time`, as long as something waits.
  void look_after(Duration time);
  void set_aside();
  void end_aside();
  // Whether the tenant's own limit leaves room for so many bytes.
  [[nodiscard]] bool may_have(const Tenant& tenant, std::uint64_t bytes) const;

  io::Loop& loop_;
  Accounts& accounts_;
  const Times times_;
  FairQueue<Waiting> queue_;
  std::uint64_t last_id_ = 0;
  struct AsideFor {
    std::uint64_t id;
    Tenant tenant;
    std::uint64_t bytes;
  };
  std::optional<AsideFor> aside_for_;  // The waiter that bytes are set aside for.
  std::optional<io::Loop::Timer> look_;
  std::function<void(const Consumer&, const Shortage&)> on_shortage_;
  std::function<void(const Consumer&)> on_wait_;
  Waits waits_;
  std::map<Tenant, Lacking> lacking_;
  // The bytes that the waiters of each tenant want. Many may wait, and each end of a turn frees
  // bytes: where the least does not fit, nobody is asked.
  std::map<Tenant, std::multiset<std::uint64_t>> wanted_;
  const std::shared_ptr<Wakeup> wakeup_;
};

}  // namespace hangar::budget
