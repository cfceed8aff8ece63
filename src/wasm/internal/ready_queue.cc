#include "wasm/internal/ready_queue.h"

#include "base/assert.h"
#include "base/time.h"
#include "budget/consumer.h"
#include "budget/fair_queue.h"
#include "io/loop.h"

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

namespace hangar::wasm::internal {

namespace {

// Ordinary evaluations have finished by then. With a shorter slice, all that wait would start
// before the first has ended, each with its memory.
constexpr std::chrono::milliseconds kSliceAmongOwn{100};
// While another tenant waits: two ticks of the epoch.
constexpr std::chrono::milliseconds kSliceAmongTenants{20};

std::uint32_t rank_of(ReadyQueue::Place place) {
  return place == ReadyQueue::Place::Begun ? 0 : 1;
}

}  // namespace

ReadyQueue::~ReadyQueue() {
  std::unique_lock lock(mutex_);
  nobody_runs_.wait(lock, [this] { return running_count_ == 0; });
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
    if (submitted_count_ + running_count_ >= workers_.thread_count()) return;
    ++submitted_count_;
  }
  workers_.submit([this] { run_next(); });
}

std::optional<Duration> ReadyQueue::slice(const budget::Tenant& tenant) const {
  const std::scoped_lock lock(mutex_);
  if (queue_.is_empty()) return std::nullopt;
  return queue_.waiting_count(tenant) < queue_.size() ? kSliceAmongTenants : kSliceAmongOwn;
}

void ReadyQueue::run_next() {
  Queue::Taken taken = take();
  const std::uint64_t cost = taken.item.step();
  if (rates_ != nullptr) rates_->charge(taken.consumer.tenant, cost, io::Loop::now());
  {
    const std::scoped_lock lock(mutex_);
    queue_.done(taken.consumer, cost);
    // Under the lock: the destructor, which waits for this, may destroy the queue once it is free.
    if (--running_count_ == 0) nobody_runs_.notify_all();
    if (queue_.size() <= submitted_count_) return;
    ++submitted_count_;
  }
  // After the other jobs that wait for a worker.
  workers_.submit([this] { run_next(); });
}

ReadyQueue::Queue::Taken ReadyQueue::take() {
  const std::scoped_lock lock(mutex_);
  --submitted_count_;
  ++running_count_;
  if (auto same = take_same_module()) {
    ++in_a_row_;
    return *std::move(same);
  }
  auto next = queue_.pop();
  HANGAR_ASSERT(next.has_value(), "nobody else takes what it was submitted for");
  if (next->item.place != Place::Begun) {
    const bool goes_on = next->item.module == last_ && in_a_row_ < kInARowMax;
    in_a_row_ = goes_on ? in_a_row_ + 1 : 1;
    last_ = next->item.module;
    last_tenant_ = next->consumer.tenant;
  }
  return *std::move(next);
}

std::optional<ReadyQueue::Queue::Taken> ReadyQueue::take_same_module() {
  if (last_ == nullptr || in_a_row_ >= kInARowMax) return std::nullopt;
  bool has_begun = false;  // Guests that have started come first.
  return queue_.pop_of(last_tenant_, [&](const budget::Consumer& /*any*/, const Waiting& waiting) {
    has_begun = has_begun || waiting.place == Place::Begun;
    return !has_begun && waiting.module == last_;
  });
}

}  // namespace hangar::wasm::internal
