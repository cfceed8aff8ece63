#include "reconcile/keyed_queue.h"

#include "base/assert.h"
#include "base/time.h"

#include <cstddef>
#include <optional>
#include <utility>

namespace hangar::reconcile {

KeyedQueue::~KeyedQueue() {
  HANGAR_ASSERT(running_.empty(), "a Ticket would point at freed memory");
}

bool KeyedQueue::add(Key key, Instant now) {
  const bool is_new = queued_.try_emplace(key, now).second;
  if (is_new && !running_.contains(key)) ready_.push_back(std::move(key));  // Else done() does it.
  return is_new;
}

void KeyedQueue::add_at(Key key, Instant due) {
  const auto [position, is_new] = delayed_.try_emplace(key, due);
  if (!is_new) {
    if (position->second <= due) return;
    due_.erase({position->second, key});
    position->second = due;
  }
  due_.emplace(due, std::move(key));
}

std::size_t KeyedQueue::advance(Instant now) {
  std::size_t added = 0;
  while (!due_.empty() && due_.begin()->first <= now) {
    auto node = due_.extract(due_.begin());
    auto& [due, key] = node.value();
    delayed_.erase(key);
    if (add(std::move(key), due)) ++added;
  }
  return added;
}

std::optional<KeyedQueue::Ticket> KeyedQueue::take(Instant now) {
  advance(now);
  if (ready_.empty()) return std::nullopt;
  Key key = std::move(ready_.front());
  ready_.pop_front();
  const auto position = queued_.find(key);
  const Duration waited = now - position->second;
  queued_.erase(position);
  running_.insert(key);
  return Ticket(*this, std::move(key), waited);
}

std::optional<Instant> KeyedQueue::next_due() const {
  if (due_.empty()) return std::nullopt;
  return due_.begin()->first;
}

void KeyedQueue::done(const Key& key) {
  HANGAR_ASSERT(running_.contains(key), "a key is finished exactly once");
  running_.erase(key);
  if (queued_.contains(key)) ready_.push_back(key);
}

KeyedQueue::Ticket::Ticket(KeyedQueue& queue, Key key, Duration waited)
    : queue_(&queue), key_(std::move(key)), waited_(waited) {}

KeyedQueue::Ticket::Ticket(Ticket&& other) noexcept
    : queue_(std::exchange(other.queue_, nullptr)),
      key_(std::move(other.key_)),
      waited_(other.waited_) {}

KeyedQueue::Ticket::~Ticket() {
  if (queue_ != nullptr) queue_->done(key_);
}

}  // namespace hangar::reconcile
