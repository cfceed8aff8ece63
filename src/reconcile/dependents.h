// Which objects to reconcile again when another object in the cluster changes. A holder depends on
// a child that it made, on an object that it looked up, or on the object that its module comes
// from.
//
// Two kinds of scopes, both shared by all holders:
//   - a single object, as long as a holder depends on it; its creation is seen too.
//   - the children of a kind, by the label that names their owner. This scope stays.
//
// Objects for which their namespaces have no room in the host's memory are bare
// (kube::Object::is_bare): whoever needs their content reads them.
//
// The cache plans how many watches that takes, so that other owners' Secrets do not end up in
// memory. A watch only reports that something happened; the holder reads what it may see under its
// own rights. Loop thread only.
#pragma once

#include "base/result.h"
#include "kube/cache/cache.h"
#include "kube/object.h"
#include "kube/scope.h"

#include <compare>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace hangar::reconcile {

struct SingleObject {
  kube::Resource resource;
  kube::ObjectKey key;

  auto operator<=>(const SingleObject&) const = default;
};

// `Holder` identifies the dependent object: a value with an order.
template <class Holder>
class Dependents {
 public:
  using Subscription = kube::Cache::Subscription;
  struct Handlers {
    // The object changed, appeared or is gone; or it can no longer be watched, and then `delta` is
    // null. Called in its own turn of the loop. `holders` may have released the object meanwhile.
    std::function<void(const SingleObject& object, const kube::Delta* delta,
                       const std::vector<Holder>& holders)>
        on_object;
    // Called for a child of any holder. Not called without a selector.
    std::function<void(const kube::GroupKind& kind, const kube::Delta& delta)> on_child = {};
    // All children of that kind are known: a child that is missing disappeared before the watch
    // started.
    std::function<void(const kube::GroupKind& kind)> on_children_known = {};
  };
  struct Options {
    kube::Detail detail = kube::Detail::Metadata;  // For single objects.
    std::string child_selector = {};               // A selector on the labels of children.
    kube::Detail child_detail = kube::Detail::Whole;
  };
  // kube::Cache::subscribe(), or its replacement in a test.
  using Subscribe =
      std::function<std::unique_ptr<Subscription>(kube::Scope scope, kube::Cache::Handlers)>;

  Dependents(Subscribe subscribe, Options options, Handlers handlers)
      : subscribe_(std::move(subscribe)),
        options_(std::move(options)),
        handlers_(std::move(handlers)) {}
  Dependents(kube::Cache& cache, Options options, Handlers handlers)
      : Dependents(
            [&cache](kube::Scope scope, kube::Cache::Handlers of) {
              return cache.subscribe(std::move(scope), std::move(of));
            },
            std::move(options), std::move(handlers)) {}
  Dependents(const Dependents&) = delete;
  Dependents& operator=(const Dependents&) = delete;

  // From now on `holder` depends on the object. The reference is valid as long as it does.
  Subscription& hold(const Holder& holder, const SingleObject& object) {
    held_[holder][object] = true;
    Watched& watched = objects_[object];
    watched.holders.insert(holder);
    if (!watched.subscription) {
      watched.subscription = subscribe_(
          {.resource = object.resource,
           .namespace_ = object.key.namespace_,
           .field_selector = "metadata.name=" + object.key.name,
           .detail = options_.detail,
           .keep = kube::Keep::Rationed},
          {.on_delta = [this, object](const kube::Delta& delta) { tell(object, &delta); },
           .on_failed = [this, object](const Error&) { on_failed(object); }});
    }
    watched.is_failing = watched.subscription->last_error().has_value();
    return *watched.subscription;
  }

  // end() releases the objects that `holder` has not held again since begin().
  void begin(const Holder& holder) {
    const auto found = held_.find(holder);
    if (found == held_.end()) return;
    for (auto& [object, is_wanted] : found->second)
      is_wanted = false;
  }
  void end(const Holder& holder) {
    keep(holder, [](const SingleObject&, bool is_wanted) { return is_wanted; });
  }
  // Releases all that the holder depends on.
  void release(const Holder& holder) {
    keep(holder, [](const SingleObject&, bool) { return false; });
  }
  // Releases the objects for which `is_wanted(object, was_held_since_begin)` is false.
  template <class IsWanted>
  void keep(const Holder& holder, IsWanted is_wanted) {
    const auto found = held_.find(holder);
    if (found == held_.end()) return;
    std::erase_if(found->second, [&](const auto& held) {
      if (is_wanted(held.first, held.second)) return false;
      drop(holder, held.first);
      return true;
    });
    if (found->second.empty()) held_.erase(found);
  }
  // Releases everything for every holder; watches of children end too.
  void clear() {
    held_.clear();
    objects_.clear();
    children_.clear();
  }

  // From now on changes of children of that kind are reported. The first requested version of a
  // kind is the one that is watched. The reference is valid until clear().
  Subscription& children(const kube::Resource& resource) {
    const kube::GroupKind kind = resource.gvk().group_kind();
    auto& subscription = children_[kind];
    if (!subscription) {
      subscription = subscribe_(
          {.resource = resource,
           .label_selector = options_.child_selector,
           .detail = options_.child_detail,
           .keep = kube::Keep::Rationed},
          {.on_delta = [this, kind](const kube::Delta& delta) { handlers_.on_child(kind, delta); },
           .on_synced =
               [this, kind] {
                 if (handlers_.on_children_known) handlers_.on_children_known(kind);
               }});
    }
    return *subscription;
  }
  // Null while children of that kind are not watched.
  [[nodiscard]] const Subscription* children(const kube::GroupKind& kind) const {
    const auto found = children_.find(kind);
    return found == children_.end() ? nullptr : found->second.get();
  }

  [[nodiscard]] bool is_held(const Holder& holder, const SingleObject& object) const {
    const auto found = held_.find(holder);
    return found != held_.end() && found->second.contains(object);
  }
  // How many single objects are held by holders for which `counts(holder)`; one that several of
  // them hold counts for each.
  template <class Counts>
  [[nodiscard]] std::size_t held_count(Counts counts) const {
    std::size_t count = 0;
    for (const auto& [holder, objects] : held_)
      if (counts(holder)) count += objects.size();
    return count;
  }
  // How many single objects have a holder.
  [[nodiscard]] std::size_t object_count() const { return objects_.size(); }

 private:
  struct Watched {
    std::unique_ptr<Subscription> subscription;
    std::set<Holder> holders;
    bool is_failing = false;  // The holders have been notified of it.
  };

  void tell(const SingleObject& object, const kube::Delta* delta) {
    const auto found = objects_.find(object);
    if (found == objects_.end()) return;
    const std::set<Holder>& holders = found->second.holders;
    handlers_.on_object(object, delta, std::vector<Holder>(holders.begin(), holders.end()));
  }
  void on_failed(const SingleObject& object) {
    const auto found = objects_.find(object);
    // The watch keeps failing; the holders know it already.
    if (found == objects_.end() || std::exchange(found->second.is_failing, true)) return;
    tell(object, nullptr);
  }
  void drop(const Holder& holder, const SingleObject& object) {
    const auto found = objects_.find(object);
    found->second.holders.erase(holder);
    if (found->second.holders.empty()) objects_.erase(found);
  }

  const Subscribe subscribe_;
  const Options options_;
  const Handlers handlers_;
  std::map<Holder, std::map<SingleObject, bool>> held_;  // The value: held since begin().
  std::map<SingleObject, Watched> objects_;              // The objects of held_.
  std::map<kube::GroupKind, std::unique_ptr<Subscription>> children_;
};

}  // namespace hangar::reconcile
