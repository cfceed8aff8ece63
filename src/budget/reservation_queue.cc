#include "budget/reservation_queue.h"

#include "base/assert.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "budget/equal_parts.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

namespace hangar::budget {

struct ReservationQueue::Wakeup {
  // Any thread.
  std::atomic<bool> is_wanted = false;
  // Loop thread.
  ReservationQueue* queue = nullptr;  // Null once the queue is destroyed.
};

ReservationQueue::ReservationQueue(io::Loop& loop, Accounts& accounts, Times times)
    : loop_(loop), accounts_(accounts), times_(times), wakeup_(std::make_shared<Wakeup>()) {
  wakeup_->queue = this;
  accounts.set_on_freed([&loop, wakeup = wakeup_] {
    if (!wakeup->is_wanted.exchange(false)) return;
    loop.post([wakeup] {
      if (wakeup->queue != nullptr) wakeup->queue->serve();
    });
  });
}

ReservationQueue::~ReservationQueue() {
  wakeup_->queue = nullptr;
}

io::Task<Result<Reservation>> ReservationQueue::reserve(
    Consumer consumer, std::uint64_t bytes, std::stop_token stop,
    std::function<void(const Shortage&)> on_wait) {
  if (stop.stop_requested()) co_return fail(ErrorKind::Cancelled, "stopping");
  auto reservation = accounts_.reserve(consumer, bytes);
  if (reservation) co_return *std::move(reservation);
  if (reservation.error().is_final()) {
    co_return fail(ErrorKind::LimitExceeded, to_text(reservation.error()));
  }
  const io::OneShot<std::optional<Reservation>> reserved(loop_);
  const std::uint64_t id = ++last_id_;
  const auto ticket = HANGAR_CO_TRY(
      queue_.push(consumer, {.id = id, .bytes = bytes, .reserved = reserved}, {.cost = bytes}));
  const auto wait = waits_.emplace(consumer, reservation.error());
  const bool is_of_host = reservation.error().level == Shortage::Level::Host;
  const auto short_of = lacking_.try_emplace(is_of_host ? Tenant::host() : consumer.tenant).first;
  const auto lack = short_of->second.emplace(
      reservation.error().wanted_bytes - reservation.error().free_bytes, reservation.error());
  const auto of_tenant = wanted_.try_emplace(consumer.tenant).first;
  const auto wanted = of_tenant->second.insert(bytes);
  if (on_wait_) on_wait_(consumer);
  if (on_wait) {
    on_wait(reservation.error());
  } else if (on_shortage_) {
    on_shortage_(consumer, reservation.error());
  }
  // Bytes may have become free between the attempt above and here.
  serve();
  if (!look_) look_after(times_.patience);
  const std::stop_callback on_stop(stop, [this, &consumer, &ticket, &reserved] {
    if (queue_.remove(consumer, ticket)) reserved.set(std::nullopt);
  });
  std::optional<Reservation> got = co_await reserved.wait();
  if (aside_for_ && aside_for_->id == id) end_aside();
  waits_.erase(wait);
  of_tenant->second.erase(wanted);
  if (of_tenant->second.empty()) wanted_.erase(of_tenant);
  short_of->second.erase(lack);
  if (short_of->second.empty()) lacking_.erase(short_of);
  if (on_wait_) on_wait_(consumer);
  if (!got) co_return fail(ErrorKind::Cancelled, "stopping");
  co_return *std::move(got);
}

const Shortage* ReservationQueue::largest_wait(const Tenant& short_of) const {
  const auto found = lacking_.find(short_of);
  return found == lacking_.end() ? nullptr : &found->second.rbegin()->second;
}

Contest ReservationQueue::contest() const {
  const Accounts::Limits& limits = accounts_.limits();
  Contest contest{.all_bytes =
                      limits.host_bytes_max - std::min(limits.host_bytes_max, limits.kept_bytes)};
  for (const auto& [tenant, bytes] : accounts_.holdings())
    contest.held.emplace(tenant, bytes);
  for (const auto& [consumer, shortage] : waits_) {
    if (shortage.level != Shortage::Level::Host) continue;
    std::uint64_t& most = contest.claims[consumer.tenant];
    most = std::max(most, shortage.wanted_bytes);
  }
  return contest;
}

void ReservationQueue::serve() {
  while (!queue_.is_empty()) {
    // Set before looking: bytes that become free from here on cause another look.
    wakeup_->is_wanted = true;
    std::optional<Reservation> reservation;
    auto next = queue_.pop([&](const Tenant& tenant) { return may_serve(tenant); },
                           [&](const Consumer& consumer, const Waiting& waiting) {
                             auto attempt = try_reserve(consumer, waiting);
                             if (!attempt) return false;
                             reservation = *std::move(attempt);
                             return true;
                           });
    if (!next) return;
    queue_.done(next->consumer);
    next->item.reserved.set(std::move(reservation));
  }
}

bool ReservationQueue::may_serve(const Tenant& tenant) const {
  const auto wanted = wanted_.find(tenant);
  if (wanted != wanted_.end() && accounts_.room_of(tenant) >= *wanted->second.begin()) return true;
  return aside_for_ && aside_for_->tenant == tenant &&
         accounts_.room_of(tenant, Accounts::Aside::Taken) >= aside_for_->bytes;
}

std::expected<Reservation, Shortage> ReservationQueue::try_reserve(const Consumer& consumer,
                                                                   const Waiting& waiting) {
  if (!aside_for_ || aside_for_->id != waiting.id)
    return accounts_.reserve(consumer, waiting.bytes);
  auto reservation = accounts_.reserve_aside(consumer, waiting.bytes);
  if (reservation) end_aside();
  return reservation;
}

void ReservationQueue::look_after(Duration time) {
  look_ = loop_.after(time, [this] {
    look_.reset();
    const bool had_its_time = aside_for_.has_value();
    if (had_its_time) {
      end_aside();
    } else {
      set_aside();
    }
    if (queue_.is_empty() || look_) return;
    look_after(aside_for_ || had_its_time ? times_.aside_max : times_.patience);
  });
}

// Sets bytes aside for the first allowed waiter in fair order. That order keeps no tenant first for
// ever, so every tenant's waiter is chosen at some time.
void ReservationQueue::set_aside() {
  const EqualParts parts(contest());
  const auto none =
      queue_.pop([](const Tenant& /*any*/) { return true; },
                 [&](const Consumer& consumer, const Waiting& waiting) {
                   if (!aside_for_ && parts.allow(consumer.tenant, waiting.bytes) &&
                       may_have(consumer.tenant, waiting.bytes)) {
                     aside_for_ = AsideFor{
                         .id = waiting.id, .tenant = consumer.tenant, .bytes = waiting.bytes};
                   }
                   return false;  // It stays in the queue.
                 });
  HANGAR_ASSERT(!none.has_value(), "no item was accepted");
  if (!aside_for_) return;
  accounts_.set_aside(aside_for_->bytes);
  serve();
}

void ReservationQueue::end_aside() {
  aside_for_.reset();
  accounts_.set_aside(0);
}

bool ReservationQueue::may_have(const Tenant& tenant, std::uint64_t bytes) const {
  const std::uint64_t held = accounts_.held_bytes(tenant);
  return tenant.is_host() || held + bytes <= accounts_.limit_of(tenant).bytes_max;
}

}  // namespace hangar::budget
