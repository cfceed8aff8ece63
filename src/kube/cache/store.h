// The objects of one scope by key, with the usual queries.
//
// No I/O and no subscribers: it turns whole lists and changes into the deltas between the old state
// and the new. One writer. Its overhead is one tree node per object (some 60 bytes). The index by
// owner is built at its first use, then kept. There is none by label: see ADR 0071.
#pragma once

#include "base/time.h"
#include "kube/cache/object_set.h"
#include "kube/object.h"
#include "kube/watch/watch_event.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::kube {

struct Delta {
  enum class Type : std::uint8_t { Added, Modified, Deleted };
  Type type = Type::Added;
  ObjectPtr object;    // For Deleted: the last state known.
  ObjectPtr previous;  // The state before. Null for Added.
  // Found by comparing a whole list with the known state. When the change happened, and what else
  // happened in between, is unknown.
  bool is_from_list = false;
  // The processor time that reading the change took, divided by the number of scopes that it
  // concerns. Zero for a change found in a list.
  Duration read_time{};
};

class Store {
  // From the uid of an owner to objects of the content.
  using Index = std::map<std::string, std::set<const Object*, ByKey>, std::less<>>;

  // One state.
  struct Content {
    ObjectSet objects;
    std::size_t size_bytes = 0;
    std::optional<Index> by_owner;

    void count_in(const ObjectPtr& object);
    void count_out(const ObjectPtr& object);
    void index_by_owner();
  };

 public:
  // Called in order. Must not change the store.
  using OnDelta = std::function<void(const Delta&)>;

  // Replaces the whole content with `objects`, in steps of one object each, because a list may be
  // long. The new state is built beside the old one and then swapped in, so that queries see one or
  // the other. The deltas between the two follow, deletions first: a subscriber that counts objects
  // sees too few for a moment, never too many.
  //
  // An object with an unchanged version yields no delta and stays the same object; another object
  // under the same key (its uid differs) yields Deleted, then Added.
  class Replacement {
   public:
    explicit Replacement(ObjectSet objects) { content_.objects = std::move(objects); }

    // False once everything is done. Every step needs the same store, which nothing else may change
    // between the first step and the last.
    [[nodiscard]] bool step(Store& store, const OnDelta& on_delta);
    [[nodiscard]] bool has_begun() const { return phase_ != Phase::New; }
    // The store has the new state.
    [[nodiscard]] bool is_in_place() const { return is_in_place_; }
    // All deltas have been delivered; only the old state remains to be freed.
    [[nodiscard]] bool is_told() const { return is_in_place_ && phase_ == Phase::Dropping; }
    // Abandons the new state: the remaining steps free it. Before is_in_place().
    void give_up() { phase_ = Phase::Dropping; }
    // Takes the objects out again, before the first step.
    [[nodiscard]] ObjectSet take_objects() { return std::move(content_.objects); }
    // The delta of that key that is delivered next; null if there is none.
    [[nodiscard]] const Delta* untold(const ObjectKey& key) const;
    // The memory of objects that only undelivered deltas still hold.
    [[nodiscard]] std::size_t untold_bytes() const { return untold_bytes_; }

   private:
    enum class Phase : std::uint8_t { New, Comparing, Telling, Dropping };
    using Deltas = std::deque<Delta>;  // By key.

    void begin(const Store& store);
    [[nodiscard]] bool compare(const Store& store);
    void keep(ObjectPtr known);
    void put_in_place(Store& store);
    [[nodiscard]] bool tell(const OnDelta& on_delta);
    [[nodiscard]] bool drop();

    Phase phase_ = Phase::New;
    bool is_in_place_ = false;
    Content content_;  // First the new one; once that is in place, the old one.
    ObjectSet::iterator old_;
    ObjectSet::iterator new_;
    Deltas deletions_;
    Deltas changes_;
    std::size_t untold_bytes_ = 0;
  };

  // The same in one step, for few objects.
  void replace(std::vector<ObjectPtr> objects, const OnDelta& on_delta);
  // A change that is already known yields no delta. A change that does not fit (Modified of an
  // unknown object) is turned into the one that does. The store changes before its delta is
  // delivered.
  void apply(const Change& change, const OnDelta& on_delta);
  // Removes the first object; false when there is none.
  [[nodiscard]] bool erase_first(const OnDelta& on_delta);

  [[nodiscard]] ObjectPtr get(const ObjectKey& key) const;
  // All objects, or those of one namespace, in the order of their keys.
  [[nodiscard]] std::vector<ObjectPtr> list(std::string_view namespace_) const;
  // The first object of list(), or the one that follows `last` there; null at the end.
  [[nodiscard]] ObjectPtr next(std::string_view namespace_, const Object* last) const;
  [[nodiscard]] std::vector<ObjectPtr> owned_by(std::string_view uid);

  [[nodiscard]] std::size_t object_count() const { return content_.objects.size(); }
  // The memory of objects and nodes in bytes, without the index.
  [[nodiscard]] std::size_t size_bytes() const { return content_.size_bytes; }

 private:
  void put(ObjectPtr object, const OnDelta& on_delta);
  void erase(ObjectSet::iterator position, const OnDelta& on_delta);

  Content content_;
};

}  // namespace hangar::kube
