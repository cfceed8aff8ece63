// What the cluster holds of the releases, and of what flights looked up, always current.
//
// Two kinds of scopes, both shared by every Airway:
//   - children: of each kind that some release has, the objects with our managed-by label. They
//   answer lookups of a release's own resources, readiness, ownership and "is it still as we
//   applied it" without a request.
//   - external: each object that a flight looked up beyond its release; its creation is seen too.
// Loop thread only.
#pragma once

#include "airways/release_view.h"
#include "airways/resource_ref.h"
#include "airways/tracker.h"
#include "base/result.h"
#include "io/task.h"
#include "kube/client.h"
#include "kube/discovery.h"
#include "kube/object.h"
#include "reconcile/dependents.h"

#include <functional>
#include <span>
#include <stop_token>
#include <vector>

namespace hangar::airways {

class LiveView final : public ReleaseView {
 public:
  struct Handlers {
    // A child of some release changed; its annotations say which.
    std::function<void(const ResourceRef& child, Change change, const kube::Object& object)>
        on_child;
    // Something that was looked up changed.
    std::function<void(const ResourceRef& resource, Change change)> on_external;
  };
  LiveView(kube::Cache& cache, kube::Discovery& discovery, const kube::Client& client,
           Handlers handlers);
  ~LiveView() override;

  [[nodiscard]] kube::Discovery& discovery() override { return discovery_; }

  // Starts watching the children of a kind, and waits until they are known.
  [[nodiscard]] io::Task<Result<>> watch_children(kube::Resource resource,
                                                  std::stop_token stop) override;
  // Null when there is none with our label, or when its kind is not watched yet.
  [[nodiscard]] kube::ObjectPtr child(const ResourceRef& ref) const override;
  // As child(): no request is made.
  [[nodiscard]] io::Task<Result<kube::ObjectPtr>> look_at_child(kube::GroupVersionKind gvk,
                                                                ResourceRef ref,
                                                                std::stop_token stop) override;

  // The object as its own watch shows it; null when there is none. `instance` holds the watch
  // until keep_external() or forget() lets go of it.
  [[nodiscard]] io::Task<Result<kube::ObjectPtr>> external(ResourceRef instance,
                                                           kube::Resource resource,
                                                           kube::ObjectKey key,
                                                           std::stop_token stop) override;
  // From now on `instance` holds only the watches of `resources`.
  void keep_external(const ResourceRef& instance, std::span<const ResourceRef> resources);
  void forget(const ResourceRef& instance) { keep_external(instance, {}); }

 private:
  [[nodiscard]] const kube::Client& own_client() const override { return client_; }

  kube::Discovery& discovery_;
  const kube::Client client_;
  const Handlers handlers_;
  reconcile::Dependents<ResourceRef> dependents_;  // Holders are instances.
};

}  // namespace hangar::airways
