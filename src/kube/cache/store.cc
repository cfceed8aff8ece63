#include "kube/cache/store.h"

#include "kube/labels.h"
#include "kube/object.h"
#include "kube/watch/watch_event.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::kube {

namespace {

// The size of a red-black tree's node: colour, three links, the pointer and its control block.
constexpr std::size_t kNodeBytes = 6 * sizeof(void*);

void add_to(auto& index, std::string_view value, const Object* object) {
  auto position = index.find(value);
  if (position == index.end()) position = index.try_emplace(std::string(value)).first;
  position->second.insert(object);
}

void remove_from(auto& index, std::string_view value, const Object* object) {
  const auto position = index.find(value);
  if (position == index.end()) return;
  position->second.erase(object);
  if (position->second.empty()) index.erase(position);
}

void for_each_label(const auto& indexes, const Object& object, const auto& visit) {
  if (indexes.empty()) return;
  const Labels labels(object);
  for (auto& [key, index] : indexes)
    if (const auto value = labels.find(key)) visit(key, *value);
}

}  // namespace

void Store::replace(std::vector<ObjectPtr> objects, const OnDelta& on_delta) {
  std::ranges::sort(objects, ByKey());

  // Deletions first: a subscriber that counts objects sees too few for a moment, never too many.
  for (auto position = objects_.begin(); position != objects_.end();) {
    const auto current = position++;
    const auto kept = std::ranges::lower_bound(objects, *current, ByKey());
    const bool is_kept = kept != objects.end() && (*kept)->key() == (*current)->key();
    if (!is_kept) erase(current, on_delta);
  }
  for (ObjectPtr& object : objects)
    put(std::move(object), on_delta);
}

void Store::apply(const Change& change, const OnDelta& on_delta) {
  if (change.type != Change::Type::Deleted) {
    put(change.object, on_delta);
    return;
  }
  const auto position = objects_.find(change.object);
  if (position == objects_.end()) return;
  // The event has the state at deletion, which is newer than ours.
  const ObjectPtr previous = *position;
  unindex(previous);
  size_bytes_ -= previous->size_bytes() + kNodeBytes;
  objects_.erase(position);
  on_delta({.type = Delta::Type::Deleted, .object = change.object, .previous = previous});
}

ObjectPtr Store::get(const ObjectKey& key) const {
  const auto position = objects_.find(KeyView{key.namespace_, key.name});
  return position == objects_.end() ? nullptr : *position;
}

std::vector<ObjectPtr> Store::list(std::string_view namespace_) const {
  if (namespace_.empty()) return {objects_.begin(), objects_.end()};
  std::vector<ObjectPtr> found;
  for (auto position = objects_.lower_bound(KeyView{namespace_, {}});
       position != objects_.end() && (*position)->key().namespace_ == namespace_; ++position) {
    found.push_back(*position);
  }
  return found;
}

std::vector<ObjectPtr> Store::owned_by(std::string_view uid) {
  if (!by_owner_) {
    by_owner_.emplace();
    for (const ObjectPtr& object : objects_)
      for (const std::string_view owner : object->owner_uids())
        add_to(*by_owner_, owner, object.get());
  }
  return find(*by_owner_, objects_, uid);
}

std::vector<ObjectPtr> Store::labelled(std::string_view key, std::string_view value) {
  auto position = by_label_.find(key);
  if (position == by_label_.end()) {
    std::map<std::string, Index, std::less<>> made;
    Index& made_index = made[std::string(key)];
    for (const ObjectPtr& object : objects_) {
      for_each_label(made, *object, [&](std::string_view, std::string_view label) {
        add_to(made_index, label, object.get());
      });
    }
    position = by_label_.insert(made.extract(made.begin())).position;
  }
  return find(position->second, objects_, value);
}

void Store::put(ObjectPtr object, const OnDelta& on_delta) {
  const auto position = objects_.find(object);
  ObjectPtr previous = position == objects_.end() ? nullptr : *position;
  if (previous && previous->uid() != object->uid()) {
    erase(position, on_delta);
    previous = nullptr;
  }
  const bool is_known = previous && !object->resource_version().empty() &&
                        previous->resource_version() == object->resource_version();
  if (is_known) return;

  if (previous) {
    unindex(previous);
    size_bytes_ -= previous->size_bytes() + kNodeBytes;
    // The key is the same, so the node keeps its place.
    auto node = objects_.extract(position);
    node.value() = object;
    objects_.insert(std::move(node));
  } else {
    objects_.insert(object);
  }
  size_bytes_ += object->size_bytes() + kNodeBytes;
  index(object);
  const auto type = previous ? Delta::Type::Modified : Delta::Type::Added;
  on_delta({.type = type, .object = std::move(object), .previous = std::move(previous)});
}

void Store::erase(Objects::iterator position, const OnDelta& on_delta) {
  ObjectPtr object = *position;
  unindex(object);
  size_bytes_ -= object->size_bytes() + kNodeBytes;
  objects_.erase(position);
  on_delta({.type = Delta::Type::Deleted, .object = object, .previous = object});
}

void Store::index(const ObjectPtr& object) {
  if (by_owner_) {
    for (const std::string_view owner : object->owner_uids())
      add_to(*by_owner_, owner, object.get());
  }
  for_each_label(by_label_, *object, [&](const std::string& key, std::string_view value) {
    add_to(by_label_.find(key)->second, value, object.get());
  });
}

void Store::unindex(const ObjectPtr& object) {
  if (by_owner_) {
    for (const std::string_view owner : object->owner_uids())
      remove_from(*by_owner_, owner, object.get());
  }
  for_each_label(by_label_, *object, [&](const std::string& key, std::string_view value) {
    remove_from(by_label_.find(key)->second, value, object.get());
  });
}

std::vector<ObjectPtr> Store::find(const Index& index, const Objects& objects,
                                   std::string_view value) {
  std::vector<ObjectPtr> found;
  const auto position = index.find(value);
  if (position == index.end()) return found;
  found.reserve(position->second.size());
  for (const Object* object : position->second)
    found.push_back(*objects.find(object));
  return found;
}

}  // namespace hangar::kube
