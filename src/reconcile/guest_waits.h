// Tells users which guests wait for memory: the condition WaitingForMemory of Operators, Flights,
// instances of Airways and workflows.
//
// A guest is known by its budget::Consumer. How its object learns of a wait depends on what the
// object's controller does meanwhile:
//   - Nothing: it has a listener, which queues the object, and asks told() when it writes a status.
//   - It waits for the guest, inside a reconcile: tell_waits() writes the status beside it.
// WaitPlan says when a wait is worth a write. Loop thread only.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "budget/reservation_queue.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "json/value.h"
#include "reconcile/wait_plan.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::reconcile {

inline constexpr std::string_view kWaitingForMemory = "WaitingForMemory";

// Puts the condition into `status`. Null: the guest does not wait; then the condition becomes False
// if there is one, also one that an earlier host has left, and none is added. `advice` follows in
// the message: "; set ...".
void put_memory_wait(json::Value& status, const budget::Shortage* shortage, std::string_view advice,
                     std::int64_t generation, WallTime now);

// The status of `manifest` with the condition; nothing when that is the status that it has.
[[nodiscard]] std::optional<json::Value> status_with_memory_wait(
    const json::Value& manifest, const std::optional<budget::Shortage>& shortage,
    std::int64_t generation, WallTime now);

class GuestWaits {
 public:
  // Null: there are no common accounts, so no guest waits. Both outlive this, which is the only
  // listener of the queue's waits.
  GuestWaits(io::Loop& loop, budget::ReservationQueue* memory,
             Duration told_after = kWaitToldAfter);
  GuestWaits(const GuestWaits&) = delete;
  GuestWaits& operator=(const GuestWaits&) = delete;
  ~GuestWaits();

  // Called whenever told() of a consumer whose name begins with `prefix` is another. Stays for as
  // long as this object.
  void listen(std::string prefix, std::function<void(const budget::Consumer&)> on_change);

  // What the status of the consumer's object should say that it waits for; null: nothing. Only
  // for consumers with a listener or a Telling.
  [[nodiscard]] const budget::Shortage* told(const budget::Consumer& consumer) const {
    return plan_.told(consumer);
  }

  // Writes a status: the shortage, or nothing when the wait is over.
  using Write = std::function<io::Task<void>(std::optional<budget::Shortage> shortage)>;
  // Calls `write` when told() is another, one call at a time, until end().
  class Telling : public std::enable_shared_from_this<Telling> {
   public:
    Telling(GuestWaits& waits, budget::Consumer consumer, Write write);
    Telling(const Telling&) = delete;
    Telling& operator=(const Telling&) = delete;
    ~Telling() = default;

    // Waits for a write that is under way.
    [[nodiscard]] io::Task<void> end();

   private:
    friend class GuestWaits;
    void look();
    static io::Task<void> carry_out(std::shared_ptr<Telling> self,
                                    std::optional<budget::Shortage> shortage);

    GuestWaits& waits_;
    const budget::Consumer consumer_;
    const Write write_;
    bool is_told_ = false;
    bool is_writing_ = false;
    bool has_ended_ = false;
    io::Event written_;
  };
  [[nodiscard]] std::shared_ptr<Telling> tell(budget::Consumer consumer, Write write);

 private:
  struct Listener {
    std::string prefix;
    std::function<void(const budget::Consumer&)> on_change;
  };

  [[nodiscard]] bool is_watched(const budget::Consumer& consumer) const;
  void on_wait(const budget::Consumer& consumer);
  void look_later(Duration delay);
  void look();
  void remove(const Telling& telling);

  io::Loop& loop_;
  budget::ReservationQueue* const memory_;
  const Duration told_after_;
  WaitPlan plan_;
  std::vector<Listener> listeners_;
  std::multimap<budget::Consumer, std::shared_ptr<Telling>> tellings_;
  io::Loop::Timer timer_;
  bool will_look_ = false;
};

// The value of `guest`, a task that waits for memory as `consumer`; meanwhile `write` is called.
// Without `waits` (null) it never is. What `write` refers to outlives this task.
template <class T>
[[nodiscard]] io::Task<Result<T>> tell_waits(GuestWaits* waits, budget::Consumer consumer,
                                             GuestWaits::Write write, io::Task<Result<T>> guest) {
  if (waits == nullptr) co_return co_await std::move(guest);
  const std::shared_ptr<GuestWaits::Telling> telling =
      waits->tell(std::move(consumer), std::move(write));
  // An exception of the guest is an error here (io/task.h): end() is always reached.
  Result<T> result = co_await std::move(guest);
  co_await telling->end();
  co_return result;
}

}  // namespace hangar::reconcile
