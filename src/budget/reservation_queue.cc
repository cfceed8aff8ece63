#include "budget/reservation_queue.h"

#include "base/result.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"

#include <atomic>
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
  ReservationQueue* queue = nullptr;  // Null once it is gone.
};

ReservationQueue::ReservationQueue(io::Loop& loop, Accounts& accounts)
    : loop_(loop), accounts_(accounts), wakeup_(std::make_shared<Wakeup>()) {
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
  const auto ticket =
      HANGAR_CO_TRY(queue_.push(consumer, {.bytes = bytes, .reserved = reserved}, {.cost = bytes}));
  const auto wait = waits_.emplace(consumer, reservation.error());
  const bool is_of_host = reservation.error().level == Shortage::Level::Host;
  const auto short_of = lacking_.try_emplace(is_of_host ? Tenant::host() : consumer.tenant).first;
  const auto lack = short_of->second.emplace(
      reservation.error().wanted_bytes - reservation.error().free_bytes, reservation.error());
  if (on_wait_) on_wait_(consumer);
  if (on_wait) {
    on_wait(reservation.error());
  } else if (on_shortage_) {
    on_shortage_(consumer, reservation.error());
  }
  // Finds bytes that became free between the attempt above and here.
  serve();
  const std::stop_callback on_stop(stop, [this, &consumer, &ticket, &reserved] {
    if (queue_.remove(consumer, ticket)) reserved.set(std::nullopt);
  });
  std::optional<Reservation> got = co_await reserved.wait();
  waits_.erase(wait);
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

void ReservationQueue::serve() {
  while (!queue_.is_empty()) {
    // Set before looking: bytes that become free from here on cause another look.
    wakeup_->is_wanted = true;
    std::optional<Reservation> reservation;
    auto next = queue_.pop([](const Tenant& /*any*/) { return true; },
                           [&](const Consumer& consumer, const Waiting& waiting) {
                             auto attempt = accounts_.reserve(consumer, waiting.bytes);
                             if (!attempt) return false;
                             reservation = *std::move(attempt);
                             return true;
                           });
    if (!next) return;
    queue_.done(next->consumer);
    next->item.reserved.set(std::move(reservation));
  }
}

}  // namespace hangar::budget
