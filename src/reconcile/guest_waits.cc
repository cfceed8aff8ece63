#include "reconcile/guest_waits.h"

#include "base/result.h"
#include "base/time.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "budget/rates.h"
#include "budget/reservation_queue.h"
#include "io/exception.h"
#include "io/loop.h"
#include "io/task.h"
#include "json/value.h"
#include "reconcile/conditions.h"
#include "reconcile/custom_resource.h"
#include "reconcile/limits.h"

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

// Waits that begin within this time are reported by one look.
constexpr std::chrono::milliseconds kLookInterval{50};

// The end of a wait is reported only if the wait was.
void put_wait(json::Value& status, const Condition& condition, WallTime now) {
  const bool is_over = condition.status == ConditionStatus::False;
  if (is_over && find_condition(status, condition.type) == nullptr) return;
  set_condition(status, condition, now);
}

}  // namespace

void put_memory_wait(json::Value& status, const budget::Shortage* shortage, std::string_view advice,
                     std::int64_t generation, WallTime now) {
  Condition condition{.type = std::string(kWaitingForMemory),
                      .status = ConditionStatus::False,
                      .reason = "Reserved",
                      .message = "the guest has the memory that it requested",
                      .observed_generation = generation};
  if (shortage != nullptr) {
    condition.status = ConditionStatus::True;
    condition.reason =
        shortage->level == budget::Shortage::Level::Host ? "HostMemory" : "NamespaceMemory";
    condition.message = fmt::format("{}; the guest continues when others release memory{}",
                                    to_text(*shortage), advice);
  }
  put_wait(status, condition, now);
}

void put_processor_wait(json::Value& status, const budget::RateLimit* brake,
                        std::int64_t generation, WallTime now) {
  Condition condition{.type = std::string(kWaitingForProcessorTime),
                      .status = ConditionStatus::False,
                      .reason = "WithinBudget",
                      .message = "the guest does not wait for processor time",
                      .observed_generation = generation};
  if (brake != nullptr) {
    condition.status = ConditionStatus::True;
    condition.reason = "NamespaceProcessorTime";
    condition.message =
        brake->set_by.empty()
            ? fmt::format(
                  "the guests of its namespace have used more than their equal part of the "
                  "processors, now {}m of a core, while processors are short; the guest "
                  "continues when their average is below it",
                  brake->millicores)
            : fmt::format(
                  "the guests of its namespace have used more than the {}m of a core that "
                  "they may use on average (budgets.cpu of {}); the guest continues when "
                  "the average is below it",
                  brake->millicores, brake->set_by);
  }
  put_wait(status, condition, now);
}

void put_no_wait(json::Value& status, std::int64_t generation, WallTime now) {
  put_memory_wait(status, nullptr, {}, generation, now);
  put_processor_wait(status, nullptr, generation, now);
}

std::optional<json::Value> status_with_wait(const json::Value& manifest, const GuestWait& wait,
                                            std::int64_t generation, WallTime now) {
  const json::Value before = status_of(manifest);
  json::Value status = before;
  put_memory_wait(status, wait.shortage ? &*wait.shortage : nullptr, {}, generation, now);
  put_processor_wait(status, wait.brake ? &*wait.brake : nullptr, generation, now);
  if (json::equal(status, before)) return std::nullopt;
  return status;
}

GuestWaits::GuestWaits(io::Loop& loop, budget::ReservationQueue* memory, budget::Rates* rates,
                       ToldAfter told_after)
    : loop_(loop),
      memory_(memory),
      rates_(rates),
      told_after_(told_after),
      plan_(told_after.memory),
      processor_plan_(told_after.processor, limits::kProcessorWaitsJoined) {
  if (memory_ != nullptr) {
    memory_->set_on_wait([this](const budget::Consumer& consumer) { on_wait(consumer); });
  }
  if (rates_ != nullptr) {
    rates_->set_on_brake([this](const budget::Consumer& consumer) { on_brake(consumer); });
  }
}

GuestWaits::~GuestWaits() {
  if (memory_ != nullptr) memory_->set_on_wait({});
  if (rates_ != nullptr) rates_->set_on_brake({});
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
  look_later(told_after_.memory);
}

void GuestWaits::on_brake(const budget::Consumer& consumer) {
  if (!is_watched(consumer)) return;
  const std::optional<budget::RateLimit> brake = rates_->brake_of(consumer);
  processor_plan_.update(consumer, brake ? &*brake : nullptr, io::Loop::now());
  look_later(told_after_.processor);
}

GuestWait GuestWaits::told_wait(const budget::Consumer& consumer) const {
  GuestWait wait;
  if (const budget::Shortage* const shortage = told(consumer)) wait.shortage = *shortage;
  if (const budget::RateLimit* const brake = told_brake(consumer)) wait.brake = *brake;
  return wait;
}

void GuestWaits::look_later(Duration delay) {
  const Instant at = io::Loop::now() + std::max<Duration>(delay, kLookInterval);
  if (look_at_ && *look_at_ <= at) return;
  look_at_ = at;
  timer_ = loop_.after(at - io::Loop::now(), [this] {
    look_at_.reset();
    look();
  });
}

void GuestWaits::look() {
  const Instant now = io::Loop::now();
  std::vector<budget::Consumer> changed = plan_.look(now);
  for (budget::Consumer& consumer : processor_plan_.look(now))
    changed.push_back(std::move(consumer));
  for (const budget::Consumer& consumer : changed) {
    for (const Listener& listener : listeners_) {
      if (consumer.name.starts_with(listener.prefix)) listener.on_change(consumer);
    }
    // A copy, because a Telling may come or go while look() runs.
    std::vector<std::shared_ptr<Telling>> tellings;
    const auto [first, last] = tellings_.equal_range(consumer);
    for (auto at = first; at != last; ++at)
      tellings.push_back(at->second);
    for (const std::shared_ptr<Telling>& telling : tellings)
      telling->look();
  }
  for (const std::optional<Instant> next : {plan_.next_look(), processor_plan_.next_look()}) {
    if (next) look_later(*next - now);
  }
}

void GuestWaits::remove(const Telling& telling) {
  const auto [first, last] = tellings_.equal_range(telling.consumer_);
  const auto found = std::find_if(
      first, last, [&telling](const auto& entry) { return entry.second.get() == &telling; });
  if (found != last) tellings_.erase(found);
  // If another Telling of the consumer exists, it has not written anything yet and needs the plan.
  if (is_watched(telling.consumer_)) return;
  plan_.forget(telling.consumer_);
  processor_plan_.forget(telling.consumer_);
}

GuestWaits::Telling::Telling(GuestWaits& waits, budget::Consumer consumer, Write write)
    : waits_(waits),
      consumer_(std::move(consumer)),
      write_(std::move(write)),
      written_(waits.loop_) {}

void GuestWaits::Telling::look() {
  if (has_ended_ || is_writing_) return;
  GuestWait wait = waits_.told_wait(consumer_);
  if (told_.is_like(wait)) return;
  is_writing_ = true;
  waits_.loop_.spawn(carry_out(shared_from_this(), std::move(wait)));
}

io::Task<void> GuestWaits::Telling::carry_out(std::shared_ptr<Telling> self, GuestWait wait) {
  self->told_ = wait;
  // A status that could not be written is not retried: the wait may be over soon.
  std::ignore = co_await io::contained(self->write_(std::move(wait)));
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
