// What the cluster holds of a release, as whoever carries the release out sees it: a host by its
// watches (live_view.h), a command by requests (request_view.h).
#pragma once

#include "airways/resource_ref.h"
#include "base/result.h"
#include "io/task.h"
#include "kube/client.h"
#include "kube/discovery.h"
#include "kube/object.h"

#include <stop_token>

namespace hangar::airways {

// Loop thread only.
class ReleaseView {
 public:
  ReleaseView() = default;
  ReleaseView(const ReleaseView&) = delete;
  ReleaseView& operator=(const ReleaseView&) = delete;
  virtual ~ReleaseView() = default;

  [[nodiscard]] virtual kube::Discovery& discovery() = 0;
  // Before resources of that kind are looked at. What is watched is known when it ends.
  [[nodiscard]] virtual io::Task<Result<>> watch_children(kube::Resource resource,
                                                          std::stop_token stop) = 0;
  // A resource of some release that is known without a request; null when there is none, or when
  // nothing is known without one.
  [[nodiscard]] virtual kube::ObjectPtr child(const ResourceRef& ref) const = 0;
  // A resource of some release as it is now; null when there is none.
  [[nodiscard]] virtual io::Task<Result<kube::ObjectPtr>> look_at_child(kube::GroupVersionKind gvk,
                                                                        ResourceRef ref,
                                                                        std::stop_token stop) = 0;

  // What a flight of `instance` looks up beyond its release; null when there is none.
  [[nodiscard]] virtual io::Task<Result<kube::ObjectPtr>> external(ResourceRef instance,
                                                                   kube::Resource resource,
                                                                   kube::ObjectKey key,
                                                                   std::stop_token stop) = 0;

  // The object whoever owns it: the child that is known, else by a request. Null when there is
  // none.
  [[nodiscard]] io::Task<Result<kube::ObjectPtr>> read(kube::Resource resource, kube::ObjectKey key,
                                                       std::stop_token stop);
  // The same with the rights of `client`, which may be another identity's.
  [[nodiscard]] io::Task<Result<kube::ObjectPtr>> read_as(kube::Client client,
                                                          kube::Resource resource,
                                                          kube::ObjectKey key,
                                                          std::stop_token stop);

 private:
  // Of who carries releases out, whoever they act as.
  [[nodiscard]] virtual const kube::Client& own_client() const = 0;
};

}  // namespace hangar::airways
