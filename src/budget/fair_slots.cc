#include "budget/fair_slots.h"

#include "base/assert.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/consumer.h"
#include "budget/rates.h"
#include "io/loop.h"
#include "io/task.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <expected>
#include <optional>
#include <stop_token>
#include <utility>

namespace hangar::budget {

namespace {

constexpr std::chrono::seconds kBrakedLookMax{1};

}  // namespace

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
  Rates* const waits_at = has_slot.is_set() ? nullptr : rates_;
  if (waits_at != nullptr) {
    waits_at->begin_wait(consumer);
    (void)braked(consumer.tenant);  // Reports a brake to Rates.
  }
  const bool got = co_await has_slot.wait();
  if (waits_at != nullptr) waits_at->end_wait(consumer);
  if (!got) co_return fail(ErrorKind::Cancelled, "stopping");
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

Duration FairSlots::braked(const Tenant& tenant) const {
  return rates_ == nullptr ? Duration::zero() : rates_->wait_of(tenant, io::Loop::now());
}

bool FairSlots::is_ahead(const Tenant& tenant) const {
  return queue_.is_ahead(tenant, [this](const Tenant& other) {
    return may_take(other, 1) && braked(other) == Duration::zero();
  });
}

void FairSlots::serve() {
  while (true) {
    std::optional<Duration> wait;  // The shortest wait of all braked tenants.
    const auto next = queue_.pop([&](const Tenant& tenant) {
      if (!may_take(tenant)) return false;
      const Duration own = braked(tenant);
      if (own > Duration::zero()) wait = std::min(wait.value_or(own), own);
      return own == Duration::zero();
    });
    if (!next && wait) serve_after(*wait);
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

// Serves again soon, even if `delay` is long, because the rate may be raised meanwhile.
void FairSlots::serve_after(Duration delay) {
  if (std::exchange(will_serve_, true)) return;
  serve_timer_ = loop_.after(std::min<Duration>(delay, kBrakedLookMax), [this] {
    will_serve_ = false;
    serve();
  });
}

void FairSlots::release(const Consumer& consumer) {
  // The host first gives back the slots that it shares with the tenants.
  if (consumer.tenant.is_host() && shares_.held_count(consumer.tenant) == 0) {
    --host_held_;
  } else {
    shares_.give_back(consumer.tenant);
  }
  queue_.done(consumer);
  serve();
}

}  // namespace hangar::budget
