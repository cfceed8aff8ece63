// The cluster's state of all releases and of looked-up objects, always current.
//
// Two kinds of scopes, both shared by all Airways:
//   - children: of each kind that a release has, the objects with our managed-by label. They
//     answer, without a request, lookups of a release's own resources, readiness, ownership, and
//     whether an object is still as we applied it.
//   - external: each object that a flight has looked up beyond its release, with its content or
//     only its metadata. Its creation is seen, too.
// Loop thread only.
#pragma once

#include "airways/lookup_watches.h"
#include "airways/release_view.h"
#include "airways/resource_ref.h"
#include "airways/tracker.h"
#include "base/result.h"
#include "io/task.h"
#include "kube/cache/cache.h"
#include "kube/cache/store.h"
#include "kube/client.h"
#include "kube/discovery.h"
#include "kube/object.h"
#include "reconcile/dependents.h"

#include <functional>
#include <span>
#include <stop_token>
#include <vector>

namespace hangar::airways {

[[nodiscard]] Change change_of(kube::Delta::Type type);

class LiveView final : public ReleaseView {
 public:
  struct Handlers {
    // A child of a release changed; its annotations say which release.
    std::function<void(const ResourceRef& child, Change change, const kube::Object& object)>
        on_child;
    // A looked-up object changed.
    std::function<void(const ResourceRef& resource, Change change, const kube::Object& object)>
        on_external;
  };
  LiveView(kube::Cache& cache, kube::Discovery& discovery, const kube::Client& client,
           Handlers handlers);
  ~LiveView() override;

  [[nodiscard]] kube::Discovery& discovery() override { return discovery_; }

  // Starts watching the children of a kind, and waits until they are known.
  [[nodiscard]] io::Task<Result<>> watch_children(kube::Resource resource,
                                                  std::stop_token stop) override;
  // Null if no child with our label exists, or if its kind is not watched yet.
  [[nodiscard]] kube::ObjectPtr seen(const ResourceRef& ref) const override;
  // Like child(), except that a bare child is read from the server.
  [[nodiscard]] io::Task<Result<kube::ObjectPtr>> look_at_child(kube::GroupVersionKind gvk,
                                                                ResourceRef ref,
                                                                std::stop_token stop) override;

  // The object from its own watch; null if there is none. `instance` holds the watch until
  // keep_external() or forget() releases it. LimitExceeded if its namespace has too many such
  // watches; the same for follow().
  [[nodiscard]] io::Task<Result<kube::ObjectPtr>> external(ResourceRef instance,
                                                           kube::Resource resource,
                                                           kube::ObjectKey key,
                                                           std::stop_token stop) override;
  // Watches the object's metadata. `instance` holds the watch as it holds that of external().
  [[nodiscard]] io::Task<Result<>> follow(ResourceRef instance, kube::Resource resource,
                                          kube::ObjectKey key, std::stop_token stop) override;
  // From now on `instance` holds only the watches of `resources`.
  void keep_external(const ResourceRef& instance, std::span<const ResourceRef> resources);
  void forget(const ResourceRef& instance) { keep_external(instance, {}); }

 private:
  [[nodiscard]] const kube::Client& own_client() const override { return client_; }
  void tell_external(const reconcile::SingleObject& object, const kube::Delta* delta) const;
  using Watched = reconcile::Dependents<ResourceRef>;
  [[nodiscard]] Result<kube::Cache::Subscription*> hold(Watched& watched,
                                                        const ResourceRef& instance,
                                                        const reconcile::SingleObject& object);

  kube::Discovery& discovery_;
  const kube::Client client_;
  const Handlers handlers_;
  // Holders are instances.
  Watched dependents_;
  Watched followed_;       // Of metadata.
  LookupWatches lookups_;  // What both hold.
};

}  // namespace hangar::airways
