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
      shares_(options.slots),
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
  return shares_.held_count(tenant) + (tenant.is_host() ? host_held_ : 0);
}

bool FairSlots::may_take(const Tenant& tenant, std::size_t freed) const {
  if (tenant.is_host()) return shares_.free_count() + freed > 0 || host_held_ < options_.host_slots;
  const std::size_t held = held_count(tenant);
  if (!shares_.may_take(tenant, freed) || held >= options_.slots_per_tenant_max) return false;
  return !most_ || held < std::max<std::size_t>(most_(tenant), 1);
}

bool FairSlots::is_ahead(const Tenant& tenant) const {
  return queue_.is_ahead(tenant, [this](const Tenant& other) { return may_take(other, 1); });
}

void FairSlots::serve() {
  while (true) {
    const auto next = queue_.pop([this](const Tenant& tenant) { return may_take(tenant); });
    if (!next) return;
    const Tenant& tenant = next->consumer.tenant;
    if (tenant.is_host() && host_held_ < options_.host_slots) {
      ++host_held_;
    } else {
      shares_.take(tenant);
    }
    next->item.set(true);
  }
}

void FairSlots::release(const Consumer& consumer) {
  // The host gives back what it shares with the tenants first.
  if (consumer.tenant.is_host() && shares_.held_count(consumer.tenant) == 0) {
    --host_held_;
  } else {
    shares_.give_back(consumer.tenant);
  }
  queue_.done(consumer);
  serve();
}

}  // namespace hangar::budget
