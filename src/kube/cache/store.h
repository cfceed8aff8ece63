// The objects of one scope, by key, with the queries that are frequent.
//
// No I/O and no subscribers: it turns whole lists and changes into the deltas between the old state
// and the new. One writer. Its own cost is one tree node an object (some 60 bytes). The indexes by
// owner and by label are built at their first use, then kept.
#pragma once

#include "base/slots.h"
#include "kube/object.h"
#include "kube/watch/watch_event.h"

#include <cstddef>
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
  // Found by comparing a whole list with the known state: when it happened, and what else happened
  // in between, is unknown.
  bool is_from_list = false;
};

class Store {
 public:
  // Called in order, after each delta has taken effect. Must not change the store.
  using OnDelta = std::function<void(const Delta&)>;

  // Replaces the whole content by `objects`. An object with an unchanged version yields no delta
  // and stays the same object; another object under the same key (its uid differs) yields Deleted,
  // then Added.
  void replace(std::vector<ObjectPtr> objects, const OnDelta& on_delta);
  // A change that is known already yields no delta. A change that does not fit (Modified of an
  // unknown object) is turned into the one that does.
  void apply(const Change& change, const OnDelta& on_delta);

  [[nodiscard]] ObjectPtr get(const ObjectKey& key) const;
  // All objects, or those of one namespace, in the order of their keys.
  [[nodiscard]] std::vector<ObjectPtr> list(std::string_view namespace_) const;
  [[nodiscard]] std::vector<ObjectPtr> owned_by(std::string_view uid);
  [[nodiscard]] std::vector<ObjectPtr> labelled(std::string_view key, std::string_view value);

  [[nodiscard]] std::size_t object_count() const { return objects_.size(); }
  // The memory of objects and nodes in bytes, without the indexes.
  [[nodiscard]] std::size_t size_bytes() const { return size_bytes_; }

 private:
  struct KeyView {
    std::string_view namespace_;
    std::string_view name;
    auto operator<=>(const KeyView&) const = default;
  };
  struct ByKey {
    using is_transparent = void;
    static KeyView view(const KeyView& key) { return key; }
    static KeyView view(const Object* object) {
      return {object->key().namespace_, object->key().name};
    }
    static KeyView view(const ObjectPtr& object) { return view(object.get()); }
    bool operator()(const auto& left, const auto& right) const { return view(left) < view(right); }
  };
  using Objects = std::set<ObjectPtr, ByKey, slots::Allocator<ObjectPtr>>;
  // From a value (uid, label value) to objects of objects_.
  using Index = std::map<std::string, std::set<const Object*, ByKey>, std::less<>>;

  void put(ObjectPtr object, const OnDelta& on_delta);
  void erase(Objects::iterator position, const OnDelta& on_delta);
  void index(const ObjectPtr& object);
  void unindex(const ObjectPtr& object);
  [[nodiscard]] static std::vector<ObjectPtr> find(const Index& index, const Objects& objects,
                                                   std::string_view value);

  Objects objects_;
  std::size_t size_bytes_ = 0;
  std::optional<Index> by_owner_;
  std::map<std::string, Index, std::less<>> by_label_;  // By label key.
};

}  // namespace hangar::kube
