// Shows users which guests wait for memory, and which for the processor time of their namespace:
// the conditions WaitingForMemory and WaitingForProcessorTime of Operators, Flights, instances of
// Airways and workflows.
//
// A guest is identified by its budget::Consumer. How its object learns of a wait depends on the
// object's controller:
// - The controller is idle: it has a listener, which queues the object, and calls told() when it
//   writes a status.
// - The controller waits for the guest inside a reconcile: tell_waits() writes the status
//   meanwhile.
// WaitPlan decides when a wait is worth a write. Loop thread only.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "budget/rates.h"
#include "budget/reservation_queue.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "json/value.h"
#include "reconcile/limits.h"
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
inline constexpr std::string_view kWaitingForProcessorTime = "WaitingForProcessorTime";

// What a guest waits for. It has its memory before it waits for processor time, but an object may
// have several guests.
struct GuestWait {
  std::optional<budget::Shortage> shortage = {};
  std::optional<budget::RateLimit> brake = {};

  [[nodiscard]] bool is_none() const { return !shortage && !brake; }
  // Whether both wait for the same resources, whatever the bound that causes the wait.
  [[nodiscard]] bool is_like(const GuestWait& other) const {
    return shortage.has_value() == other.shortage.has_value() &&
           brake.has_value() == other.brake.has_value();
  }
};

// Puts the condition into `status`. Null: the guest does not wait; then an existing condition
// becomes False, also one that an earlier host left, and none is added. `advice` is appended to the
// message: "; set ...".
void put_memory_wait(json::Value& status, const budget::Shortage* shortage, std::string_view advice,
                     std::int64_t generation, WallTime now);

// The same for WaitingForProcessorTime.
void put_processor_wait(json::Value& status, const budget::RateLimit* brake,
                        std::int64_t generation, WallTime now);

// Both conditions, for a guest that does not wait.
void put_no_wait(json::Value& status, std::int64_t generation, WallTime now);

// The status of `manifest` with both conditions; nothing when it already is the same.
[[nodiscard]] std::optional<json::Value> status_with_wait(const json::Value& manifest,
                                                          const GuestWait& wait,
                                                          std::int64_t generation, WallTime now);

class GuestWaits {
 public:
  struct ToldAfter {
    Duration memory = kWaitToldAfter;
    Duration processor = limits::kProcessorWaitToldAfter;
  };
  // Null: there are no common accounts (or no rates), so no guest waits for them. Both outlive this
  // object, which is the only listener of these waits.
  GuestWaits(io::Loop& loop, budget::ReservationQueue* memory, budget::Rates* rates)
      : GuestWaits(loop, memory, rates, ToldAfter()) {}
  GuestWaits(io::Loop& loop, budget::ReservationQueue* memory, budget::Rates* rates,
             ToldAfter told_after);
  GuestWaits(const GuestWaits&) = delete;
  GuestWaits& operator=(const GuestWaits&) = delete;
  ~GuestWaits();

  // Calls `on_change` whenever told() or told_brake() changes for a consumer whose name begins with
  // `prefix`. Stays as long as this object.
  void listen(std::string prefix, std::function<void(const budget::Consumer&)> on_change);

  // The wait that the status of the consumer's object should report; null: none. Only for consumers
  // with a listener or a Telling.
  [[nodiscard]] const budget::Shortage* told(const budget::Consumer& consumer) const {
    return plan_.told(consumer);
  }
  [[nodiscard]] const budget::RateLimit* told_brake(const budget::Consumer& consumer) const {
    return processor_plan_.told(consumer);
  }

  // Writes a status with the given wait, if there is one.
  using Write = std::function<io::Task<void>(GuestWait wait)>;
  // Calls `write` when the wait to report changes, one call at a time, until end().
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
    static io::Task<void> carry_out(std::shared_ptr<Telling> self, GuestWait wait);

    GuestWaits& waits_;
    const budget::Consumer consumer_;
    const Write write_;
    GuestWait told_;
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
  void on_brake(const budget::Consumer& consumer);
  [[nodiscard]] GuestWait told_wait(const budget::Consumer& consumer) const;
  void look_later(Duration delay);
  void look();
  void remove(const Telling& telling);

  io::Loop& loop_;
  budget::ReservationQueue* const memory_;
  budget::Rates* const rates_;
  const ToldAfter told_after_;
  WaitPlan<budget::Shortage> plan_;
  WaitPlan<budget::RateLimit> processor_plan_;
  std::vector<Listener> listeners_;
  std::multimap<budget::Consumer, std::shared_ptr<Telling>> tellings_;
  io::Loop::Timer timer_;
  std::optional<Instant> look_at_;
};

// The value of `guest`, a task that waits for memory or processor time as `consumer`; meanwhile
// `write` is called for changes. Without `waits` (null) it never is. Objects that `write` refers to
// outlive this task.
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
