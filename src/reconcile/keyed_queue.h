// Work to do, at most once at a time per key.
//
// The promise: a key handed out by take() is not handed out again until its Ticket is destroyed,
// and a key added meanwhile is handed out once more after that. Keys are handed out in the order in
// which they became ready. `now` is the caller's. Loop thread only.
#pragma once

#include "base/time.h"
#include "kube/object.h"

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace hangar::reconcile {

class KeyedQueue {
 public:
  using Key = kube::ObjectKey;

  // The holder of a Ticket is the only worker on that key. Destroying it is "done", on every
  // path out.
  class Ticket {
   public:
    Ticket(Ticket&& other) noexcept;
    Ticket(const Ticket&) = delete;
    Ticket& operator=(const Ticket&) = delete;
    Ticket& operator=(Ticket&&) = delete;
    ~Ticket();

    [[nodiscard]] const Key& key() const { return key_; }
    // How long the key was ready before it was taken.
    [[nodiscard]] Duration waited() const { return waited_; }

   private:
    friend class KeyedQueue;
    Ticket(KeyedQueue& queue, Key key, Duration waited);

    KeyedQueue* queue_;  // Null once moved from. The queue outlives its tickets.
    Key key_;
    Duration waited_;
  };

  KeyedQueue() = default;
  KeyedQueue(const KeyedQueue&) = delete;
  KeyedQueue& operator=(const KeyedQueue&) = delete;
  ~KeyedQueue();

  // False when the key is already waiting to be handed out.
  bool add(Key key, Instant now);
  // Adds the key when `due` has come. Of several for one key the earliest counts; take() of the key
  // does not cancel it.
  void add_at(Key key, Instant due);

  // Makes the delayed keys that are due by `now` ready; returns how many were not ready before.
  std::size_t advance(Instant now);
  // The next key that is ready, those that are due by `now` included.
  [[nodiscard]] std::optional<Ticket> take(Instant now);

  // When the next delayed key becomes due.
  [[nodiscard]] std::optional<Instant> next_due() const;
  // Keys that are ready, or will be once their worker is done; delayed ones do not count.
  [[nodiscard]] std::size_t depth() const { return queued_.size(); }
  [[nodiscard]] std::size_t running_count() const { return running_.size(); }
  [[nodiscard]] bool is_running(const Key& key) const { return running_.contains(key); }

 private:
  void done(const Key& key);

  std::deque<Key> ready_;
  std::map<Key, Instant> queued_;  // Ready, or until its Ticket ends; since when.
  std::set<Key> running_;
  std::map<Key, Instant> delayed_;
  std::set<std::pair<Instant, Key>> due_;  // delayed_, by time.
};

}  // namespace hangar::reconcile
