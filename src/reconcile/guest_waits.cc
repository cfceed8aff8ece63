#include "reconcile/guest_waits.h"

#include "base/result.h"
#include "base/time.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "budget/reservation_queue.h"
#include "io/exception.h"
#include "io/loop.h"
#include "io/task.h"
#include "json/value.h"
#include "reconcile/conditions.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace hangar::reconcile {

namespace {

// Waits that begin at about the same time are told by one look.
constexpr std::chrono::milliseconds kLookInterval{50};

}  // namespace

void put_memory_wait(json::Value& status, const budget::Shortage* shortage, std::string_view advice,
                     std::int64_t generation, WallTime now) {
  Condition condition{.type = std::string(kWaitingForMemory),
                      .status = ConditionStatus::False,
                      .reason = "Reserved",
                      .message = "the guest has the memory that it asked for",
                      .observed_generation = generation};
  if (shortage == nullptr) {
    if (find_condition(status, kWaitingForMemory) == nullptr) return;
  } else {
    condition.status = ConditionStatus::True;
    condition.reason =
        shortage->level == budget::Shortage::Level::Host ? "HostMemory" : "NamespaceMemory";
    condition.message = fmt::format("{}; the guest goes on when others have left memory{}",
                                    to_text(*shortage), advice);
  }
  set_condition(status, condition, now);
}

std::optional<json::Value> status_with_memory_wait(const json::Value& manifest,
                                                   const std::optional<budget::Shortage>& shortage,
                                                   std::int64_t generation, WallTime now) {
  const json::Value before = status_of(manifest);
  json::Value status = before;
  put_memory_wait(status, shortage ? &*shortage : nullptr, {}, generation, now);
  if (json::equal(status, before)) return std::nullopt;
  return status;
}

GuestWaits::GuestWaits(io::Loop& loop, budget::ReservationQueue* memory, Duration told_after)
    : loop_(loop), memory_(memory), told_after_(told_after), plan_(told_after) {
  if (memory_ == nullptr) return;
  memory_->set_on_wait([this](const budget::Consumer& consumer) { on_wait(consumer); });
}

GuestWaits::~GuestWaits() {
  if (memory_ != nullptr) memory_->set_on_wait({});
}

void GuestWaits::listen(std::string prefix,
                        std::function<void(const budget::Consumer&)> on_change) {
  listeners_.push_back({.prefix = std::move(prefix), .on_change = std::move(on_change)});
}

std::shared_ptr<GuestWaits::Telling> GuestWaits::tell(budget::Consumer consumer, Write write) {
  auto telling = std::make_shared<Telling>(*this, consumer, std::move(write));
  tellings_.emplace(std::move(consumer), telling);
  return telling;
}

bool GuestWaits::is_watched(const budget::Consumer& consumer) const {
  return tellings_.contains(consumer) ||
         std::ranges::any_of(listeners_, [&](const Listener& listener) {
           return consumer.name.starts_with(listener.prefix);
         });
}

void GuestWaits::on_wait(const budget::Consumer& consumer) {
  if (!is_watched(consumer)) return;
  const auto waiting = memory_->waits().find(consumer);
  plan_.update(consumer, waiting == memory_->waits().end() ? nullptr : &waiting->second,
               io::Loop::now());
  look_later(told_after_);
}

void GuestWaits::look_later(Duration delay) {
  if (std::exchange(will_look_, true)) return;
  timer_ = loop_.after(std::max<Duration>(delay, kLookInterval), [this] {
    will_look_ = false;
    look();
  });
}

void GuestWaits::look() {
  const Instant now = io::Loop::now();
  for (const budget::Consumer& consumer : plan_.look(now)) {
    for (const Listener& listener : listeners_) {
      if (consumer.name.starts_with(listener.prefix)) listener.on_change(consumer);
    }
    std::vector<std::shared_ptr<Telling>> tellings;
    const auto [first, last] = tellings_.equal_range(consumer);
    for (auto at = first; at != last; ++at)
      tellings.push_back(at->second);
    for (const std::shared_ptr<Telling>& telling : tellings)
      telling->look();
  }
  if (const std::optional<Instant> next = plan_.next_look()) look_later(*next - now);
}

void GuestWaits::remove(const Telling& telling) {
  const auto [first, last] = tellings_.equal_range(telling.consumer_);
  const auto found = std::find_if(
      first, last, [&telling](const auto& entry) { return entry.second.get() == &telling; });
  if (found != last) tellings_.erase(found);
  // The next Telling has not written anything yet.
  if (!is_watched(telling.consumer_)) plan_.forget(telling.consumer_);
}

GuestWaits::Telling::Telling(GuestWaits& waits, budget::Consumer consumer, Write write)
    : waits_(waits),
      consumer_(std::move(consumer)),
      write_(std::move(write)),
      written_(waits.loop_) {}

void GuestWaits::Telling::look() {
  if (has_ended_ || is_writing_) return;
  const budget::Shortage* const shortage = waits_.told(consumer_);
  if (is_told_ == (shortage != nullptr)) return;
  is_writing_ = true;
  waits_.loop_.spawn(
      carry_out(shared_from_this(), shortage == nullptr ? std::nullopt : std::optional(*shortage)));
}

io::Task<void> GuestWaits::Telling::carry_out(std::shared_ptr<Telling> self,
                                              std::optional<budget::Shortage> shortage) {
  const bool is_wait = shortage.has_value();
  // A status that could not be written is not worth another try: the wait may be over soon.
  std::ignore = co_await io::contained(self->write_(std::move(shortage)));
  self->is_told_ = is_wait;
  self->is_writing_ = false;
  self->written_.notify_all();
  self->look();
}

io::Task<void> GuestWaits::Telling::end() {
  const std::shared_ptr<Telling> self = shared_from_this();
  has_ended_ = true;
  while (is_writing_)
    (void)co_await written_.wait({});
  waits_.remove(*this);
}

}  // namespace hangar::reconcile
