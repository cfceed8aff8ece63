#include "budget/fair_slots.h"

#include "base/assert.h"
#include "base/result.h"
#include "budget/consumer.h"
#include "io/loop.h"
#include "io/task.h"

#include <algorithm>
#include <cstddef>
#include <expected>
#include <stop_token>
#include <utility>

namespace hangar::budget {

FairSlots::FairSlots(io::Loop& loop, Options options)
    : loop_(loop),
      options_(options),
      free_(options.slots),
      queue_({.waiting_per_consumer_max = options.waiting_per_consumer_max,
              .waiting_per_tenant_max = options.waiting_per_tenant_max}) {
  HANGAR_ASSERT(options.slots > 0 && options.slots_per_tenant_max > 0, "nothing would ever run");
}

io::Task<Result<FairSlots::Slot>> FairSlots::acquire(Consumer consumer, Demand demand,
                                                     std::stop_token stop) {
  if (stop.stop_requested()) co_return fail(ErrorKind::Cancelled, "stopping");
  const io::OneShot<bool> has_slot(loop_);
  const auto ticket = HANGAR_CO_TRY(queue_.push(consumer, has_slot, demand));
  serve();
  const std::stop_callback on_stop(stop, [this, &consumer, &ticket, &has_slot] {
    // A waiter that got its slot is not in the queue any more: it keeps the slot.
    if (queue_.remove(consumer, ticket)) has_slot.set(false);
  });
  if (!co_await has_slot.wait()) co_return fail(ErrorKind::Cancelled, "stopping");
  co_return Slot(*this, std::move(consumer));
}

std::size_t FairSlots::held_count(const Tenant& tenant) const {
  const auto found = held_.find(tenant);
  return found == held_.end() ? 0 : found->second;
}

bool FairSlots::may_take(const Tenant& tenant) const {
  const std::size_t held = held_count(tenant);
  if (tenant.is_host()) return free_ > 0 || held < options_.host_slots;
  if (held >= free_ || held >= options_.slots_per_tenant_max) return false;
  return !most_ || held < std::max<std::size_t>(most_(tenant), 1);
}

void FairSlots::serve() {
  while (true) {
    const auto next = queue_.pop([this](const Tenant& tenant) { return may_take(tenant); });
    if (!next) return;
    const Tenant& tenant = next->consumer.tenant;
    std::size_t& held = held_[tenant];
    // The host's own slots are used first.
    if (!tenant.is_host() || held >= options_.host_slots) --free_;
    ++held;
    next->item.set(true);
  }
}

void FairSlots::release(const Consumer& consumer) {
  const auto held = held_.find(consumer.tenant);
  --held->second;
  if (!consumer.tenant.is_host() || held->second >= options_.host_slots) ++free_;
  if (held->second == 0) held_.erase(held);
  queue_.done(consumer);
  serve();
}

}  // namespace hangar::budget
