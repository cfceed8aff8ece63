// Objects by key: those of a store, or of a list that is being read.
#pragma once

#include "base/slots.h"
#include "io/loop.h"
#include "io/shared_slice.h"
#include "kube/object.h"

#include <compare>
#include <cstddef>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

namespace hangar::kube {

struct KeyView {
  std::string_view namespace_;
  std::string_view name;
  auto operator<=>(const KeyView&) const = default;
};

// Orders objects by namespace and name.
struct ByKey {
  using is_transparent = void;
  static KeyView view(const KeyView& key) { return key; }
  static KeyView view(const ObjectKey& key) { return {key.namespace_, key.name}; }
  static KeyView view(const Object* object) { return view(object->key()); }
  static KeyView view(const ObjectPtr& object) { return view(object.get()); }
  bool operator()(const auto& left, const auto& right) const { return view(left) < view(right); }
};

using ObjectSet = std::set<ObjectPtr, ByKey, slots::Allocator<ObjectPtr>>;

// The size of a red-black tree's node: colour, three links, the pointer and its control block.
inline constexpr std::size_t kObjectNodeBytes = 6 * sizeof(void*);

// Puts `object` where another of the same key is. Returns the position.
inline ObjectSet::iterator replace_at(ObjectSet& objects, ObjectSet::iterator position,
                                      ObjectPtr object) {
  const auto next = std::next(position);
  // The key is the same, so the node keeps its place.
  auto node = objects.extract(position);
  node.value() = std::move(object);
  return objects.insert(next, std::move(node));
}

// Adds the object, in place of another of the same key.
inline void put(ObjectSet& objects, ObjectPtr object) {
  const auto position = objects.lower_bound(object);
  const bool is_there = position != objects.end() && (*position)->key() == object->key();
  if (is_there) {
    replace_at(objects, position, std::move(object));
  } else {
    objects.insert(position, std::move(object));
  }
}

// Frees many objects in pieces: some now, the rest in later turns of the loop.
void drop_in_slices(io::Loop& loop, io::SharedSlice slice, ObjectSet objects);

}  // namespace hangar::kube
