// The recent changes of one collection, in the order of their versions. Bounds limit how many
// are kept.
//
// It tells from which versions a watch can resume: those after which every change is known. When
// the cache has to list again (because the API server no longer knows its version), a gap remains:
// only the net result of the changes between the last known version and the list is known. So no
// watch can resume from a version inside the gap.
#pragma once

#include "base/slots.h"
#include "base/time.h"
#include "kube/cache/store.h"
#include "kube/object.h"

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <utility>
#include <vector>

namespace hangar::gateway {

// One change. The object of a Deleted has the version of the deletion, if that is known.
struct Change {
  kube::Delta::Type type = kube::Delta::Type::Added;
  kube::ObjectPtr object;
  kube::ObjectPtr previous;   // Null for Added.
  std::uint64_t version = 0;  // A watcher that is up to date here has seen it.
};

// The memory that a change or a difference keeps. It holds the earlier state of the object even if
// the object has changed again since.
[[nodiscard]] std::uint64_t bytes_of(const auto& change) {
  return change.object->size_bytes() + (change.previous ? change.previous->size_bytes() : 0);
}

// A copy of the object with another metadata.resourceVersion.
[[nodiscard]] kube::ObjectPtr with_version(const kube::ObjectPtr& object, std::uint64_t version);

// Turns the differences between the state at `from` and that at `to` into changes that a watcher
// can take one by one, and stop between any two: no object claims a version up to which changes
// are still to come. Deletions come first, since their own versions are unknown, and carry `from`
// (if all are deletions, the last carries `to`); objects that were made or changed follow, by
// version. A watcher that resumes from a version in between has to be compared with the state at
// that version.
[[nodiscard]] std::vector<Change> in_order(std::vector<kube::Delta> differences, std::uint64_t from,
                                           std::uint64_t to);

// The differences of one list. add() puts them into the order of in_order() and take() makes
// changes of them, each one by one: with many differences, either takes more than one turn of the
// loop.
class Differences {
 public:
  void add(kube::Delta delta);
  // They lead from the state at `from` to that at `to`.
  void set_range(std::uint64_t from, std::uint64_t to) {
    from_ = from;
    to_ = to;
  }

  [[nodiscard]] bool empty() const { return deltas_.empty(); }
  // Whether a History could keep them all.
  [[nodiscard]] bool are_few() const;
  // The next change. Not when empty.
  [[nodiscard]] Change take();
  // Discards the next difference.
  void drop_one() { deltas_.erase(deltas_.begin()); }

 private:
  std::multimap<std::uint64_t, kube::Delta> deltas_;  // By their position.
  std::uint64_t bytes_ = 0;                           // Of all that were added.
  std::uint64_t from_ = 0;
  std::uint64_t to_ = 0;
};

class History {
 public:
  // Drops everything and starts from a complete list of that version.
  void begin(std::uint64_t version);

  // All changes up to this version are known.
  [[nodiscard]] std::uint64_t version() const { return version_; }

  void append(Change change);
  // Adds the differences that a list at `list_version` has shown since version().
  void append_list(const std::vector<Change>& changes, std::uint64_t list_version);
  // The same for differences that are too many to keep: no watch resumes from before the list.
  void skip_list(std::uint64_t list_version);
  // Adds what lies before: the differences from the state at `from` to the one at `to`, which is
  // not after version(). They replace the changes up to `to`.
  void reach_back(const std::vector<Change>& changes, std::uint64_t from, std::uint64_t to);
  // Records that no other change happened up to `version`.
  void advance(std::uint64_t version);
  // Drops changes that are older than limits::kGatewayHistoryAge. The caller calls it at intervals;
  // each call notes the version reached, which is how a later call knows the age.
  void age(Instant now);

  // Whether every change after `version` is kept here. True for versions that are still to come.
  [[nodiscard]] bool covers(std::uint64_t version) const;
  // Calls `visit(change)` for each change after `version`, which must be covered.
  void for_each_after(std::uint64_t version, const auto& visit) const {
    for (const Change& change : changes_)
      if (change.version > version) visit(change);
  }

  [[nodiscard]] std::size_t size() const { return changes_.size(); }

 private:
  void push(Change change);
  void pop();

  // Lists: most histories have few changes, and a deque takes half a KiB while it has none.
  std::list<Change, slots::Allocator<Change>> changes_;
  std::uint64_t bytes_ = 0;
  std::uint64_t floor_ = 0;  // Changes up to here may be missing.
  std::uint64_t version_ = 0;
  // The time of each call of age(), and the version reached then.
  std::list<std::pair<Instant, std::uint64_t>> ages_;
  // Versions strictly between the two cannot be resumed from.
  std::list<std::pair<std::uint64_t, std::uint64_t>> gaps_;
};

}  // namespace hangar::gateway
