// Bounds how many coroutines do something at a time, and orders the waiting ones: io::Semaphore
// that is fair between tenants.
#pragma once

#include "base/fair_queue.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/consumer.h"
#include "budget/rates.h"
#include "budget/shares.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <stop_token>
#include <utility>

namespace hangar::budget {

// Guarantees, in addition to the order (FairQueue):
//   - A tenant holds no more slots than the rule of Shares allows.
//   - There are `host_slots` more, for the host's own work only.
//   - A tenant that is braked keeps its place in the queue. A stop ends its wait.
// Loop thread; outlives its slots and its waiters, except for tasks that are never resumed.
class FairSlots {
 public:
  struct Options {
    std::size_t slots = 1;
    std::size_t host_slots = 0;
    std::size_t slots_per_tenant_max = std::numeric_limits<std::size_t>::max();
    std::size_t waiting_per_consumer_max = std::numeric_limits<std::size_t>::max();
    std::size_t waiting_per_tenant_max = std::numeric_limits<std::size_t>::max();
  };
  // Held until it is destroyed.
  class Slot {
   public:
    Slot(Slot&& other) noexcept
        : slots_(std::exchange(other.slots_, nullptr)), consumer_(std::move(other.consumer_)) {}
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;
    Slot& operator=(Slot&&) = delete;
    ~Slot() {
      if (slots_ != nullptr) slots_->release(consumer_);
    }

    // The consumer that acquired the slot.
    [[nodiscard]] const Consumer& consumer() const { return consumer_; }
    // Adds cost beyond the expected one, such as the processor time of a guest's turn.
    void charge(std::uint64_t cost) { slots_->queue_.charge(consumer_, cost); }
    // True when another tenant waits that may take this slot and was charged less than this tenant:
    // where work can be interrupted, it is that tenant's turn.
    [[nodiscard]] bool is_ahead() const { return slots_->is_ahead(consumer_.tenant); }

   private:
    friend class FairSlots;
    Slot(FairSlots& slots, Consumer consumer) : slots_(&slots), consumer_(std::move(consumer)) {}

    FairSlots* slots_;  // Null once moved from.
    Consumer consumer_;
  };

  FairSlots(io::Loop& loop, Options options);
  FairSlots(const FairSlots&) = delete;
  FairSlots& operator=(const FairSlots&) = delete;

  // LimitExceeded when the queue is full. Cancelled when a stop is requested first.
  [[nodiscard]] io::Task<Result<Slot>> acquire(Consumer consumer, Demand demand,
                                               std::stop_token stop);

  // A tenant holds no more slots than `most` returns for it, if that is less than
  // Options::slots_per_tenant_max, but may always hold one. Called whenever a slot is assigned.
  void limit_tenants(std::function<std::size_t(const Tenant&)> most) { most_ = std::move(most); }

  // From now on a tenant gets no slot while `rates` makes it wait. `rates` outlives this object.
  void brake(Rates& rates) { rates_ = &rates; }

  [[nodiscard]] io::Loop& loop() const { return loop_; }
  [[nodiscard]] std::size_t waiting_count() const { return queue_.size(); }
  [[nodiscard]] std::size_t waiting_count(const Tenant& tenant) const {
    return queue_.waiting_count(tenant);
  }
  [[nodiscard]] std::size_t held_count(const Tenant& tenant) const;

 private:
  // `freed`: as if that many more slots were free.
  [[nodiscard]] bool may_take(const Tenant& tenant, std::size_t freed = 0) const;
  // How long the tenant's rate delays its next slot.
  [[nodiscard]] Duration braked(const Tenant& tenant) const;
  [[nodiscard]] bool is_ahead(const Tenant& tenant) const;
  void serve();
  void serve_after(Duration delay);
  void release(const Consumer& consumer);

  io::Loop& loop_;
  const Options options_;
  Shares shares_;
  std::size_t host_held_ = 0;  // How many of host_slots are held.
  std::function<std::size_t(const Tenant&)> most_;
  Rates* rates_ = nullptr;  // Null: no tenant is braked.
  bool will_serve_ = false;
  io::Loop::Timer serve_timer_;         // Set while braked tenants wait.
  FairQueue<io::OneShot<bool>> queue_;  // Items are set to whether the waiter has a slot.
};

}  // namespace hangar::budget
