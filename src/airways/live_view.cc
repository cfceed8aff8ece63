#include "airways/live_view.h"

#include "airways/ownership.h"
#include "airways/resource_ref.h"
#include "airways/tracker.h"
#include "base/result.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/cache/cache.h"
#include "kube/cache/store.h"
#include "kube/client.h"
#include "kube/discovery.h"
#include "kube/object.h"
#include "kube/scope.h"

#include <fmt/format.h>

#include <algorithm>
#include <expected>
#include <iterator>
#include <memory>
#include <span>
#include <stop_token>
#include <utility>

namespace hangar::airways {

namespace {

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

kube::GroupKind group_kind_of(const kube::Resource& resource) {
  return {.group = resource.group, .kind = resource.kind};
}

}  // namespace

LiveView::LiveView(kube::Cache& cache, kube::Discovery& discovery, const kube::Client& client,
                   Handlers handlers)
    : cache_(cache), discovery_(discovery), client_(client), handlers_(std::move(handlers)) {}

LiveView::~LiveView() = default;

io::Task<Result<>> LiveView::watch_children(kube::Resource resource, std::stop_token stop) {
  const kube::GroupKind kind = group_kind_of(resource);
  auto& subscription = children_[kind];
  if (!subscription) {
    const kube::Scope scope{.resource = resource,
                            .label_selector = fmt::format("{}={}", kManagedByLabel, kManagedBy)};
    subscription = cache_.subscribe(
        scope, {.on_delta = [this, kind](const kube::Delta& delta) {
          const kube::ObjectKey& key = delta.object->key();
          handlers_.on_child({.kind = kind, .namespace_ = key.namespace_, .name = key.name},
                             change_of(delta.type), *delta.object);
        }});
  }
  Result<> synced = co_await subscription->wait_synced(std::move(stop));
  if (!synced) {
    co_return std::unexpected(std::move(synced).error().in("watch " + kind.to_string()));
  }
  co_return Result<>();
}

kube::ObjectPtr LiveView::child(const ResourceRef& ref) const {
  const auto found = children_.find(ref.kind);
  return found == children_.end() ? nullptr : found->second->get(ref.key());
}

io::Task<Result<kube::ObjectPtr>> LiveView::read(kube::Resource resource, kube::ObjectKey key,
                                                 std::stop_token stop) {
  return read_as(client_, std::move(resource), std::move(key), std::move(stop));
}

io::Task<Result<kube::ObjectPtr>> LiveView::read_as(kube::Client client, kube::Resource resource,
                                                    kube::ObjectKey key, std::stop_token stop) {
  if (kube::ObjectPtr known = child(
          {.kind = group_kind_of(resource), .namespace_ = key.namespace_, .name = key.name})) {
    co_return known;
  }
  const kube::GroupVersionKind gvk = resource.gvk();
  Result<json::Value> live =
      co_await client.get(std::move(resource), std::move(key), std::move(stop));
  if (!live) {
    if (live.error().kind() == ErrorKind::NotFound) co_return kube::ObjectPtr();
    co_return std::unexpected(std::move(live).error());
  }
  co_return kube::Object::make(*std::move(live), gvk);
}

io::Task<Result<kube::ObjectPtr>> LiveView::external(ResourceRef instance, kube::Resource resource,
                                                     kube::ObjectKey key, std::stop_token stop) {
  const ResourceRef ref{
      .kind = group_kind_of(resource), .namespace_ = key.namespace_, .name = key.name};
  Watched& watched = external_[ref];
  watched.holders.insert(std::move(instance));
  if (!watched.subscription) {
    const kube::Scope scope{.resource = std::move(resource),
                            .namespace_ = key.namespace_,
                            .field_selector = "metadata.name=" + key.name};
    watched.subscription =
        cache_.subscribe(scope, {.on_delta = [this, ref](const kube::Delta& delta) {
                           handlers_.on_external(ref, change_of(delta.type));
                         }});
  }
  // Held by its instance, which is being worked on: it cannot go while we wait.
  kube::Cache::Subscription& subscription = *watched.subscription;
  HANGAR_CO_TRY(co_await subscription.wait_synced(std::move(stop)));
  co_return subscription.get(key);
}

void LiveView::keep_external(const ResourceRef& instance, std::span<const ResourceRef> resources) {
  for (auto entry = external_.begin(); entry != external_.end();) {
    if (std::ranges::find(resources, entry->first) == resources.end())
      entry->second.holders.erase(instance);
    entry = entry->second.holders.empty() ? external_.erase(entry) : std::next(entry);
  }
}

}  // namespace hangar::airways
