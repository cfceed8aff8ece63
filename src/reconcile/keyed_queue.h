// A queue of keys to work on; at most one worker per key at a time.
//
// The promise: a key handed out by take() is not handed out again until its Ticket is destroyed,
// and a key added meanwhile is handed out once more after that. Deletions are handed out first.
// Namespaces take turns, by how long their keys were worked on; the keys of one namespace are
// handed out in the order in which they became ready. `now` is the caller's. Loop thread only.
#pragma once

#include "base/fair_queue.h"
#include "base/time.h"
#include "budget/consumer.h"
#include "kube/object.h"

#include <cstddef>
#include <functional>
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
    // When the key was added, and how long after that it was taken.
    [[nodiscard]] Instant added_at() const { return added_at_; }
    [[nodiscard]] Duration waited() const { return waited_; }
    [[nodiscard]] bool is_deletion() const { return is_deletion_; }
    // How long it was worked on, which counts against its namespace.
    void charge(Duration took) { took_ = took; }

   private:
    friend class KeyedQueue;
    Ticket(KeyedQueue& queue, Key key, Instant added_at, Duration waited, bool is_deletion);

    KeyedQueue* queue_;  // Null once moved from. The queue outlives its tickets.
    Key key_;
    Instant added_at_;
    Duration waited_;
    Duration took_{};
    bool is_deletion_;
  };

  // `is_deletion` judges the key as it is now. Called whenever the key is added, or becomes ready.
  explicit KeyedQueue(std::function<bool(const Key&)> is_deletion = {})
      : is_deletion_(std::move(is_deletion)) {}
  KeyedQueue(const KeyedQueue&) = delete;
  KeyedQueue& operator=(const KeyedQueue&) = delete;
  ~KeyedQueue();

  // False when the key is already waiting to be handed out.
  bool add(Key key, Instant now);
  // Adds the key when `due` has come. If there are several times for one key, the earliest counts;
  // take() of the key does not cancel it.
  void add_at(Key key, Instant due);

  // Makes the delayed keys that are due by `now` ready; returns how many were not ready before.
  std::size_t advance(Instant now);
  // The next key that is ready, those that are due by `now` included, of a namespace that may
  // run one.
  using MayRun = std::function<bool(const budget::Tenant& tenant, bool is_deletion)>;
  [[nodiscard]] std::optional<Ticket> take(Instant now, const MayRun& may_run);
  [[nodiscard]] std::optional<Ticket> take(Instant now) {
    return take(now, [](const budget::Tenant& /*any*/, bool /*any*/) { return true; });
  }

  // When the next delayed key becomes due.
  [[nodiscard]] std::optional<Instant> next_due() const;
  // Keys that are ready, or will be once their worker is done; delayed ones do not count.
  [[nodiscard]] std::size_t depth() const { return queued_.size(); }
  [[nodiscard]] std::size_t running_count() const { return running_.size(); }
  // Whether a deletion is ready.
  [[nodiscard]] bool has_deletion() const { return !deletions_.is_empty(); }
  [[nodiscard]] bool is_running(const Key& key) const { return running_.contains(key); }

 private:
  using Ready = FairQueue<Key>;
  // A key that is ready, or will be once its Ticket is destroyed.
  struct Queued {
    Instant since;
    std::optional<Ready::Ticket> ready = {};
    bool is_deletion = false;
  };

  [[nodiscard]] static budget::Consumer consumer_of(const Key& key);
  [[nodiscard]] Ready& ready_of(bool is_deletion) { return is_deletion ? deletions_ : ordinary_; }
  void make_ready(const Key& key, Queued& queued);
  void done(const Ticket& ticket);

  const std::function<bool(const Key&)> is_deletion_;
  Ready ordinary_;
  Ready deletions_;
  std::map<Key, Queued> queued_;
  std::set<Key> running_;
  std::map<Key, Instant> delayed_;
  std::set<std::pair<Instant, Key>> due_;  // delayed_, by time.
};

}  // namespace hangar::reconcile
