#include "io/virtual_time.h"

#include "base/assert.h"
#include "base/time.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

namespace hangar::io {

namespace {

constinit thread_local VirtualTime* time_of_thread = nullptr;

// A machine that has been up for a day, on the first day of 2026.
constexpr Instant kStart{std::chrono::hours(24)};
constexpr WallTime kWallStart{std::chrono::seconds(1'767'225'600)};

// Code that works until a time is reached must reach it.
constexpr Duration kReading = std::chrono::nanoseconds(100);

}  // namespace

VirtualTime::VirtualTime(Options options)
    : options_(options),
      entropy_(options.seed ^ 0x9e3779b97f4a7c15U),
      random_(options.seed),
      world_(kStart) {
  HANGAR_ASSERT(time_of_thread == nullptr, "a thread has one simulation at a time");
  time_of_thread = this;
}

VirtualTime::~VirtualTime() {
  owned_.clear();
  HANGAR_ASSERT(queues_.empty(), "loops and workers end before their time");
  time_of_thread = nullptr;
}

VirtualTime* VirtualTime::current() {
  return time_of_thread;
}

void VirtualTime::Process::stop() {
  if (std::exchange(is_stopped_, true)) return;
  stopped_at_ = time_.world_;
}

void VirtualTime::Process::resume(Clocks clocks) {
  if (!std::exchange(is_stopped_, false)) return;
  const Duration stopped = time_.world_ - stopped_at_;
  if (clocks == Clocks::WentOn) return;
  timers_lost_ += stopped;
  if (clocks == Clocks::Suspended) return;
  boot_lost_ += stopped;
  wall_offset_ -= stopped;
}

VirtualTime::Queue::Queue(VirtualTime& time) : time_(time), process_(time.process_now()) {
  time_.queues_.push_back(this);
}

VirtualTime::Queue::~Queue() {
  std::erase(time_.queues_, this);
}

void VirtualTime::Queue::after(Duration delay, Work work, std::function<bool()> is_over) {
  const Instant now = time_.world_ - process_.timers_lost_;
  // A delay of ages, such as Duration::max(), would wrap around.
  const Duration bounded = std::min<Duration>(delay, std::chrono::hours(24 * 365));
  timers_.emplace(std::pair(now + bounded, ++time_.timer_count_),
                  Timer{.work = std::move(work), .is_over = std::move(is_over)});
}

VirtualTime::Queue& VirtualTime::queue_of(const void* owner) {
  std::unique_ptr<Queue>& queue = owned_[owner];
  if (!queue) queue = std::make_unique<Queue>(*this);
  return *queue;
}

bool VirtualTime::step() {
  if (!collect_due()) {
    const Instant next = next_due();
    if (next == Instant::max()) return false;
    world_ = std::max(world_, next);
    collect_due();
  }
  std::vector<Queue*> ready;
  std::ranges::copy_if(queues_, std::back_inserter(ready), [](const Queue* queue) {
    return !queue->ready_.empty() && !queue->process_.is_stopped_;
  });
  if (ready.empty()) return true;
  Queue& chosen = *ready[draw(0, ready.size() - 1)];
  Queue::Work work = std::move(chosen.ready_.front());
  chosen.ready_.pop_front();
  ++step_count_;
  const Inside inside(chosen.process_);
  work();
  world_ += draw_up_to(options_.turn_max);
  return true;
}

void VirtualTime::run_for(Duration duration) {
  const Instant end = world_ + duration;
  while (world_ < end) {
    if (!collect_due() && next_due() >= end) {
      world_ = end;
      return;
    }
    step();
  }
}

Instant VirtualTime::now() {
  world_ += kReading;
  return world_ - process_now().boot_lost_;
}

WallTime VirtualTime::wall_now() {
  world_ += kReading;
  return kWallStart + std::chrono::duration_cast<WallTime::duration>(world_ - kStart +
                                                                     process_now().wall_offset_);
}

Duration VirtualTime::processor_time() {
  processor_time_ += draw_up_to(options_.turn_max);
  return processor_time_;
}

std::uint64_t VirtualTime::draw(std::uint64_t min, std::uint64_t max) {
  return std::uniform_int_distribution<std::uint64_t>(min, max)(random_);
}

Duration VirtualTime::draw_up_to(Duration max) {
  return Duration(draw(0, static_cast<std::uint64_t>(std::max(max, Duration::zero()).count())));
}

Instant VirtualTime::world_time(const Process& process, Instant timer) {
  return timer + process.timers_lost_;
}

bool VirtualTime::collect_due() {
  bool is_any_ready = false;
  for (Queue* const queue : queues_) {
    if (queue->process_.is_stopped_) continue;
    auto& timers = queue->timers_;
    while (!timers.empty() && world_time(queue->process_, timers.begin()->first.first) <= world_) {
      Queue::Timer timer = std::move(timers.extract(timers.begin()).mapped());
      if (!timer.is_over || !timer.is_over()) queue->ready_.push_back(std::move(timer.work));
    }
    is_any_ready |= !queue->ready_.empty();
  }
  return is_any_ready;
}

Instant VirtualTime::next_due() {
  Instant next = Instant::max();
  for (Queue* const queue : queues_) {
    if (queue->process_.is_stopped_) continue;
    auto& timers = queue->timers_;
    while (!timers.empty() && timers.begin()->second.is_over && timers.begin()->second.is_over()) {
      timers.erase(timers.begin());
    }
    if (timers.empty()) continue;
    next = std::min(next, world_time(queue->process_, timers.begin()->first.first));
  }
  return next;
}

}  // namespace hangar::io
