#include "kube/cache/store.h"

#include "kube/cache/object_set.h"
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

bool is_same_version(const Object& known, const Object& object) {
  return !object.resource_version().empty() &&
         known.resource_version() == object.resource_version();
}

}  // namespace

// --- Content

void Store::Content::count_in(const ObjectPtr& object) {
  size_bytes += object->size_bytes() + kObjectNodeBytes;
  if (by_owner) {
    for (const std::string_view owner : object->owner_uids())
      add_to(*by_owner, owner, object.get());
  }
}

void Store::Content::count_out(const ObjectPtr& object) {
  size_bytes -= object->size_bytes() + kObjectNodeBytes;
  if (by_owner) {
    for (const std::string_view owner : object->owner_uids())
      remove_from(*by_owner, owner, object.get());
  }
}

void Store::Content::index_by_owner() {
  by_owner.emplace();
  for (const ObjectPtr& object : objects)
    for (const std::string_view owner : object->owner_uids())
      add_to(*by_owner, owner, object.get());
}

// --- Replacement

bool Store::Replacement::step(Store& store, const OnDelta& on_delta) {
  switch (phase_) {
    case Phase::New:
      begin(store);
      return true;
    case Phase::Comparing:
      if (!compare(store)) put_in_place(store);
      return true;
    case Phase::Telling:
      if (!tell(on_delta)) phase_ = Phase::Dropping;
      return true;
    case Phase::Dropping:
      return drop();
  }
  return false;
}

void Store::Replacement::begin(const Store& store) {
  if (store.content_.by_owner) content_.by_owner.emplace();
  old_ = store.content_.objects.begin();
  new_ = content_.objects.begin();
  phase_ = Phase::Comparing;
}

// False when all have been compared.
bool Store::Replacement::compare(const Store& store) {
  const bool has_old = old_ != store.content_.objects.end();
  const bool has_new = new_ != content_.objects.end();
  if (!has_old && !has_new) return false;
  const ByKey is_before;
  if (!has_new || (has_old && is_before(*old_, *new_))) {
    const ObjectPtr& gone = *old_++;
    untold_bytes_ += gone->size_bytes();
    deletions_.push_back({.type = Delta::Type::Deleted, .object = gone, .previous = gone});
    return true;
  }
  if (!has_old || is_before(*new_, *old_)) {
    changes_.push_back({.type = Delta::Type::Added, .object = *new_});
  } else {
    const ObjectPtr& known = *old_++;
    if (known->uid() != (*new_)->uid()) {
      untold_bytes_ += known->size_bytes();
      deletions_.push_back({.type = Delta::Type::Deleted, .object = known, .previous = known});
      changes_.push_back({.type = Delta::Type::Added, .object = *new_});
    } else if (is_same_version(*known, **new_)) {
      if (known != *new_) new_ = replace_at(content_.objects, new_, known);
    } else {
      untold_bytes_ += known->size_bytes();
      changes_.push_back({.type = Delta::Type::Modified, .object = *new_, .previous = known});
    }
  }
  content_.count_in(*new_++);
  return true;
}

void Store::Replacement::put_in_place(Store& store) {
  // A query may have been the first to need the index since begin(): it is built at once, as always
  // at its first use.
  if (store.content_.by_owner && !content_.by_owner) content_.index_by_owner();
  std::swap(store.content_, content_);
  is_in_place_ = true;
  phase_ = Phase::Telling;
}

bool Store::Replacement::tell(const OnDelta& on_delta) {
  Deltas& deltas = deletions_.empty() ? changes_ : deletions_;
  if (deltas.empty()) return false;
  const Delta delta = std::move(deltas.front());
  deltas.pop_front();
  if (delta.previous) untold_bytes_ -= delta.previous->size_bytes();
  on_delta(delta);
  return true;
}

bool Store::Replacement::drop() {
  for (Deltas* const deltas : {&deletions_, &changes_}) {
    if (deltas->empty()) continue;
    deltas->pop_front();
    return true;
  }
  if (content_.objects.empty()) return false;
  const auto first = content_.objects.begin();
  content_.count_out(*first);
  content_.objects.erase(first);
  return true;
}

const Delta* Store::Replacement::untold(const ObjectKey& key) const {
  for (const Deltas* deltas : {&deletions_, &changes_}) {
    const auto object_of = [](const Delta& delta) { return delta.object.get(); };
    const auto found = std::ranges::lower_bound(*deltas, ByKey::view(key), ByKey(), object_of);
    if (found != deltas->end() && found->object->key() == key) return &*found;
  }
  return nullptr;
}

// --- Store

void Store::replace(std::vector<ObjectPtr> objects, const OnDelta& on_delta) {
  ObjectSet set;
  for (ObjectPtr& object : objects)
    kube::put(set, std::move(object));
  Replacement replacement(std::move(set));
  while (replacement.step(*this, on_delta)) {
  }
}

void Store::apply(const Change& change, const OnDelta& on_delta) {
  if (change.type != Change::Type::Deleted) {
    put(change.object, on_delta);
    return;
  }
  const auto position = content_.objects.find(change.object);
  if (position == content_.objects.end()) return;
  // The event has the state at deletion, which is newer than ours.
  const ObjectPtr previous = *position;
  content_.count_out(previous);
  content_.objects.erase(position);
  on_delta({.type = Delta::Type::Deleted, .object = change.object, .previous = previous});
}

bool Store::erase_first(const OnDelta& on_delta) {
  if (content_.objects.empty()) return false;
  erase(content_.objects.begin(), on_delta);
  return true;
}

ObjectPtr Store::get(const ObjectKey& key) const {
  const auto position = content_.objects.find(ByKey::view(key));
  return position == content_.objects.end() ? nullptr : *position;
}

std::vector<ObjectPtr> Store::list(std::string_view namespace_) const {
  const ObjectSet& objects = content_.objects;
  if (namespace_.empty()) return {objects.begin(), objects.end()};
  std::vector<ObjectPtr> found;
  for (auto position = objects.lower_bound(KeyView{namespace_, {}});
       position != objects.end() && (*position)->key().namespace_ == namespace_; ++position) {
    found.push_back(*position);
  }
  return found;
}

ObjectPtr Store::next(std::string_view namespace_, const Object* last) const {
  const ObjectSet& objects = content_.objects;
  const auto position = last == nullptr ? objects.lower_bound(KeyView{namespace_, {}})
                                        : objects.upper_bound(ByKey::view(last));
  const bool is_there = position != objects.end() &&
                        (namespace_.empty() || (*position)->key().namespace_ == namespace_);
  return is_there ? *position : nullptr;
}

std::vector<ObjectPtr> Store::owned_by(std::string_view uid) {
  if (!content_.by_owner) content_.index_by_owner();
  std::vector<ObjectPtr> found;
  const auto position = content_.by_owner->find(uid);
  if (position == content_.by_owner->end()) return found;
  found.reserve(position->second.size());
  for (const Object* object : position->second)
    found.push_back(*content_.objects.find(object));
  return found;
}

void Store::put(ObjectPtr object, const OnDelta& on_delta) {
  ObjectSet& objects = content_.objects;
  auto position = objects.find(object);
  ObjectPtr previous = position == objects.end() ? nullptr : *position;
  if (previous && previous->uid() != object->uid()) {
    erase(position, on_delta);
    previous = nullptr;
  }
  if (previous && is_same_version(*previous, *object)) return;

  if (previous) {
    content_.count_out(previous);
    replace_at(objects, position, object);
  } else {
    objects.insert(object);
  }
  content_.count_in(object);
  const auto type = previous ? Delta::Type::Modified : Delta::Type::Added;
  on_delta({.type = type, .object = std::move(object), .previous = std::move(previous)});
}

void Store::erase(ObjectSet::iterator position, const OnDelta& on_delta) {
  const ObjectPtr object = *position;
  content_.count_out(object);
  content_.objects.erase(position);
  on_delta({.type = Delta::Type::Deleted, .object = object, .previous = object});
}

}  // namespace hangar::kube
