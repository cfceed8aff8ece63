#include "reconcile/keyed_queue.h"

#include "base/assert.h"
#include "base/time.h"
#include "budget/consumer.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace hangar::reconcile {

KeyedQueue::~KeyedQueue() {
  HANGAR_ASSERT(running_.empty(), "a Ticket would point at freed memory");
}

bool KeyedQueue::add(Key key, Instant now) {
  const auto [position, is_new] = queued_.try_emplace(std::move(key), Queued{.since = now});
  auto& [queued_key, queued] = *position;
  if (running_.contains(queued_key)) return is_new;  // done() makes it ready.
  // A waiting key whose object is now being deleted moves to the queue of deletions.
  if (queued.ready && !queued.is_deletion && is_deletion_ && is_deletion_(queued_key)) {
    ordinary_.remove(consumer_of(queued_key), *queued.ready);
    queued.ready.reset();
  }
  if (!queued.ready) make_ready(queued_key, queued);
  return is_new;
}

budget::Consumer KeyedQueue::consumer_of(const Key& key) {
  return {.tenant = budget::Tenant::of_namespace(key.namespace_), .name = {}};
}

void KeyedQueue::make_ready(const Key& key, Queued& queued) {
  queued.is_deletion = is_deletion_ && is_deletion_(key);
  const auto ticket = ready_of(queued.is_deletion).push(consumer_of(key), key);
  HANGAR_ASSERT(ticket.has_value(), "the queue has no limit");
  queued.ready = *ticket;
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

std::optional<KeyedQueue::Ticket> KeyedQueue::take(Instant now, const MayRun& may_run) {
  advance(now);
  for (const bool is_deletion : {true, false}) {
    auto taken = ready_of(is_deletion).pop([&](const budget::Tenant& tenant) {
      return may_run(tenant, is_deletion);
    });
    if (!taken) continue;
    const auto position = queued_.find(taken->item);
    const Instant since = position->second.since;
    queued_.erase(position);
    running_.insert(taken->item);
    return Ticket(*this, std::move(taken->item), since, now - since, is_deletion);
  }
  return std::nullopt;
}

std::optional<Instant> KeyedQueue::next_due() const {
  if (due_.empty()) return std::nullopt;
  return due_.begin()->first;
}

void KeyedQueue::done(const Ticket& ticket) {
  const Key& key = ticket.key_;
  HANGAR_ASSERT(running_.contains(key), "a key is finished exactly once");
  running_.erase(key);
  // A whole second costs as much as a thousand runs that take no time.
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(ticket.took_).count();
  ready_of(ticket.is_deletion_)
      .done(consumer_of(key), static_cast<std::uint64_t>(std::max<std::int64_t>(took, 0)));
  const auto queued = queued_.find(key);
  if (queued != queued_.end()) make_ready(queued->first, queued->second);
}

KeyedQueue::Ticket::Ticket(KeyedQueue& queue, Key key, Instant added_at, Duration waited,
                           bool is_deletion)
    : queue_(&queue),
      key_(std::move(key)),
      added_at_(added_at),
      waited_(waited),
      is_deletion_(is_deletion) {}

KeyedQueue::Ticket::Ticket(Ticket&& other) noexcept
    : queue_(std::exchange(other.queue_, nullptr)),
      key_(std::move(other.key_)),
      added_at_(other.added_at_),
      waited_(other.waited_),
      took_(other.took_),
      is_deletion_(other.is_deletion_) {}

KeyedQueue::Ticket::~Ticket() {
  if (queue_ != nullptr) queue_->done(*this);
}

}  // namespace hangar::reconcile
