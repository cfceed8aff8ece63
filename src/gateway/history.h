// The changes of one collection in the order of their versions, as far back as bounds allow.
//
// It says from which versions a watch can go on: those where every change since is known. A list in
// the middle (the API server had forgotten our place) leaves a gap: what happened between what was
// known and the list is known in its outcome only, so no watch can go on from within.
#pragma once

#include "base/slots.h"
#include "base/time.h"
#include "kube/cache/store.h"
#include "kube/object.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

namespace hangar::gateway {

// One change. The object of a Deleted has the version of the deletion, as far as that is known.
struct Change {
  kube::Delta::Type type = kube::Delta::Type::Added;
  kube::ObjectPtr object;
  kube::ObjectPtr previous;   // Null for Added.
  std::uint64_t version = 0;  // Who has seen everything up to here has seen this.
};

// The object as it is but for metadata.resourceVersion.
[[nodiscard]] kube::ObjectPtr with_version(const kube::ObjectPtr& object, std::uint64_t version);

// The differences between the state at `from` and that at `to` as changes that a watcher can take
// one by one, and stop between any two: the version in an object never says more than what has been
// told. Deletions, whose own version nobody knows, come first and say `from` (the last one of
// nothing but deletions says `to`); then what was made or changed, by its version. Who goes on from
// a version in between must be compared with the state at that version again.
[[nodiscard]] std::vector<Change> in_order(std::vector<kube::Delta> differences, std::uint64_t from,
                                           std::uint64_t to);

class History {
 public:
  // Forgets everything; begins with a whole list of that version.
  void begin(std::uint64_t version);

  // All changes up to here are known.
  [[nodiscard]] std::uint64_t version() const { return version_; }

  void append(Change change);
  // The outcome of what happened between version() and that of a list.
  void append_list(const std::vector<Change>& changes, std::uint64_t list_version);
  // Nothing else has changed up to `version`.
  void advance(std::uint64_t version);
  // Forgets what has been here for longer than limits::kGatewayHistoryAge, if it is called from
  // time to time.
  void age(Instant now);

  // Whether every change after `version` is here. True of versions that are still to come.
  [[nodiscard]] bool covers(std::uint64_t version) const;
  // Calls `visit(change)` for each change after `version`, which is covered.
  void for_each_after(std::uint64_t version, const auto& visit) const {
    for (const Change& change : changes_)
      if (change.version > version) visit(change);
  }

  [[nodiscard]] std::size_t size() const { return changes_.size(); }

 private:
  void push(Change change);
  void pop();

  std::deque<Change, slots::Allocator<Change>> changes_;
  std::uint64_t bytes_ = 0;
  std::uint64_t floor_ = 0;  // Changes up to here may be missing.
  std::uint64_t version_ = 0;
  // When it was asked to age, and how far it went then.
  std::deque<std::pair<Instant, std::uint64_t>> ages_;
  // Between the two, both excluded.
  std::deque<std::pair<std::uint64_t, std::uint64_t>> gaps_;
};

}  // namespace hangar::gateway
