#include "airways/live_view.h"

#include "airways/ownership.h"
#include "airways/resource_ref.h"
#include "airways/tracker.h"
#include "base/consumer.h"
#include "base/result.h"
#include "io/task.h"
#include "kube/cache/cache.h"
#include "kube/cache/store.h"
#include "kube/client.h"
#include "kube/discovery.h"
#include "kube/find.h"
#include "kube/object.h"
#include "kube/scope.h"
#include "reconcile/dependents.h"

#include <fmt/format.h>

#include <algorithm>
#include <expected>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hangar::airways {

namespace {

ResourceRef to_ref(const kube::GroupKind& kind, const kube::ObjectKey& key) {
  return {.kind = kind, .namespace_ = key.namespace_, .name = key.name};
}
ResourceRef to_ref(const reconcile::SingleObject& object) {
  return to_ref(object.resource.gvk().group_kind(), object.key);
}

}  // namespace

Change change_of(kube::Delta::Type type) {
  switch (type) {
    case kube::Delta::Type::Added:
      return Change::Added;
    case kube::Delta::Type::Modified:
      return Change::Modified;
    case kube::Delta::Type::Deleted:
      return Change::Deleted;
  }
  return Change::Modified;
}

LiveView::LiveView(kube::Cache& cache, kube::Discovery& discovery, const kube::Client& client,
                   Handlers handlers)
    : discovery_(discovery),
      client_(client),
      handlers_(std::move(handlers)),
      dependents_(
          cache,
          {.detail = kube::Detail::Whole,
           .child_selector = fmt::format("{}={}", kManagedByLabel, kManagedBy)},
          {.on_object = [this](const reconcile::SingleObject& object, const kube::Delta* delta,
                               const std::vector<ResourceRef>&) { tell_external(object, delta); },
           .on_child =
               [this](const kube::GroupKind& kind, const kube::Delta& delta) {
                 handlers_.on_child(to_ref(kind, delta.object->key()), change_of(delta.type),
                                    *delta.object);
               }}),
      followed_(cache, {.detail = kube::Detail::Metadata},
                {.on_object = [this](const reconcile::SingleObject& object,
                                     const kube::Delta* delta, const std::vector<ResourceRef>&) {
                  tell_external(object, delta);
                }}) {}

LiveView::~LiveView() = default;

void LiveView::tell_external(const reconcile::SingleObject& object,
                             const kube::Delta* delta) const {
  if (delta == nullptr) return;  // A failed watch.
  handlers_.on_external(to_ref(object), change_of(delta->type), *delta->object);
}

io::Task<Result<>> LiveView::watch_children(kube::Resource resource, std::stop_token stop) {
  Result<> synced = co_await dependents_.children(resource).wait_synced(std::move(stop));
  if (!synced) {
    co_return std::unexpected(
        std::move(synced).error().in("watch " + resource.gvk().group_kind().to_string()));
  }
  co_return Result<>();
}

kube::ObjectPtr LiveView::seen(const ResourceRef& ref) const {
  const kube::Cache::Subscription* const children = dependents_.children(ref.kind);
  return children == nullptr ? nullptr : children->get(ref.key());
}

io::Task<Result<kube::ObjectPtr>> LiveView::look_at_child(kube::GroupVersionKind gvk,
                                                          ResourceRef ref, std::stop_token stop) {
  kube::ObjectPtr known = seen(ref);
  if (!known || !known->is_bare()) co_return known;
  kube::Resource resource =
      HANGAR_CO_TRY(co_await discovery_.find(std::move(gvk), Consumer::of_host("readiness"), stop));
  co_return co_await kube::find(client_, std::move(resource), ref.key(), std::move(stop));
}

Result<kube::Cache::Subscription*> LiveView::hold(Watched& watched, const ResourceRef& instance,
                                                  const reconcile::SingleObject& object) {
  if (!watched.is_held(instance, object)) HANGAR_TRY(lookups_.add(instance, to_ref(object)));
  return &watched.hold(instance, object);
}

io::Task<Result<kube::ObjectPtr>> LiveView::external(ResourceRef instance, kube::Resource resource,
                                                     kube::ObjectKey key, std::stop_token stop) {
  // The instance, which is being worked on, holds the subscription: it stays while we wait.
  kube::Cache::Subscription* const subscription =
      HANGAR_CO_TRY(hold(dependents_, instance, {.resource = resource, .key = key}));
  HANGAR_CO_TRY(co_await subscription->wait_synced(stop));
  kube::ObjectPtr known = subscription->get(key);
  if (!known || !known->is_bare()) co_return known;
  co_return co_await kube::find(client_, std::move(resource), std::move(key), std::move(stop));
}

io::Task<Result<>> LiveView::follow(ResourceRef instance, kube::Resource resource,
                                    kube::ObjectKey key, std::stop_token stop) {
  const std::string what = resource.qualified_plural();
  kube::Cache::Subscription* const subscription = HANGAR_CO_TRY(
      hold(followed_, instance, {.resource = std::move(resource), .key = std::move(key)}));
  Result<> synced = co_await subscription->wait_synced(std::move(stop));
  if (!synced) co_return std::unexpected(std::move(synced).error().in("watch " + what));
  co_return Result<>();
}

void LiveView::keep_external(const ResourceRef& instance, std::span<const ResourceRef> resources) {
  const auto is_wanted = [&](const reconcile::SingleObject& object, bool) {
    const ResourceRef ref = to_ref(object);
    if (std::ranges::find(resources, ref) != resources.end()) return true;
    lookups_.remove(instance, ref);
    return false;
  };
  dependents_.keep(instance, is_wanted);
  followed_.keep(instance, is_wanted);
}

}  // namespace hangar::airways
