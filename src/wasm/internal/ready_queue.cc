#include "wasm/internal/ready_queue.h"

#include "base/assert.h"
#include "base/fair_queue.h"
#include "base/time.h"
#include "budget/consumer.h"

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

namespace hangar::wasm::internal {

namespace {

// Ordinary evaluations have finished by then. With a shorter slice, all waiting guests would start
// before the first has finished, each with its memory.
constexpr std::chrono::milliseconds kSliceAmongOwn{100};
// While another tenant waits, or work other than guests: two ticks of the epoch.
constexpr std::chrono::milliseconds kSliceAmongTenants{20};

std::uint32_t rank_of(ReadyQueue::Place place) {
  return place == ReadyQueue::Place::Begun ? 0 : 1;
}

// The consumer of the tenant's guests at the workers.
budget::Consumer guests_of(const budget::Tenant& tenant) {
  return {.tenant = tenant, .name = "guests"};
}

}  // namespace

ReadyQueue::~ReadyQueue() {
  std::unique_lock lock(mutex_);
  nobody_runs_.wait(lock, [this] { return calls_.empty(); });
}

void ReadyQueue::push(const budget::Consumer& consumer, Place place, Key module, Step step) {
  // A guest that has used up its slice gets no advantage from its module.
  if (place != Place::New) module = nullptr;
  {
    const std::scoped_lock lock(mutex_);
    const auto pushed =
        queue_.push(consumer, {.place = place, .module = module, .step = std::move(step)},
                    {.cost = 0, .rank = rank_of(place)});
    HANGAR_ASSERT(pushed.has_value(), "guests that run are bounded elsewhere");
    Calls& calls = calls_[consumer.tenant];
    if (calls.submitted + calls.running >= workers_.thread_count()) return;
    ++calls.submitted;
  }
  submit(consumer.tenant);
}

std::optional<Duration> ReadyQueue::slice(const budget::Tenant& tenant) const {
  if (workers_.has_waiting_beside(guests_of(tenant))) return kSliceAmongTenants;
  const std::scoped_lock lock(mutex_);
  return queue_.waiting_count(tenant) > 0 ? std::optional<Duration>(kSliceAmongOwn) : std::nullopt;
}

void ReadyQueue::submit(const budget::Tenant& tenant) {
  workers_.submit(guests_of(tenant), [this, tenant] { run_next(tenant); });
}

void ReadyQueue::run_next(const budget::Tenant& tenant) {
  std::optional<Queue::Taken> taken = take(tenant);
  std::chrono::nanoseconds used{};
  bool goes_on = false;
  while (taken) {
    const std::uint64_t cost = taken->item.step();
    used += std::chrono::nanoseconds(cost);
    const std::scoped_lock lock(mutex_);
    queue_.done(taken->consumer, cost);
    taken.reset();
    const auto calls = calls_.find(tenant);
    const bool has_more = queue_.waiting_count(tenant) > calls->second.submitted;
    // The next guests of the module continue at once: otherwise other guests would take the caches.
    if (has_more && used < kSliceAmongTenants) taken = take_same_module(tenant);
    if (taken) continue;
    --calls->second.running;
    goes_on = has_more;
    if (goes_on) ++calls->second.submitted;
    if (calls->second.submitted + calls->second.running == 0) calls_.erase(calls);
    // Notify under the lock: the waiting destructor may destroy the queue once the lock is free.
    if (calls_.empty()) nobody_runs_.notify_all();
  }
  // The rest waits for the tenant's next turn.
  if (goes_on) submit(tenant);
}

ReadyQueue::Queue::Taken ReadyQueue::take(const budget::Tenant& tenant) {
  const std::scoped_lock lock(mutex_);
  Calls& calls = calls_.at(tenant);
  --calls.submitted;
  ++calls.running;
  if (auto same = take_same_module(tenant)) return *std::move(same);
  return take_any(tenant);
}

ReadyQueue::Queue::Taken ReadyQueue::take_any(const budget::Tenant& tenant) {
  auto next = queue_.pop_of(tenant, [](const auto& /*any*/, const auto& /*any*/) { return true; });
  HANGAR_ASSERT(next.has_value(), "nobody else takes what it was submitted for");
  if (next->item.place != Place::Begun) {
    const bool goes_on = next->item.module == last_ && in_a_row_ < kInARowMax;
    in_a_row_ = goes_on ? in_a_row_ + 1 : 1;
    last_ = next->item.module;
    last_tenant_ = tenant;
  }
  return *std::move(next);
}

std::optional<ReadyQueue::Queue::Taken> ReadyQueue::take_same_module(const budget::Tenant& tenant) {
  if (last_ == nullptr || in_a_row_ >= kInARowMax || last_tenant_ != tenant) return std::nullopt;
  bool has_begun = false;  // Guests that have started come first.
  auto same = queue_.pop_of(tenant, [&](const budget::Consumer& /*any*/, const Waiting& waiting) {
    has_begun = has_begun || waiting.place == Place::Begun;
    return !has_begun && waiting.module == last_;
  });
  if (same) ++in_a_row_;
  return same;
}

}  // namespace hangar::wasm::internal
