// The cluster's state of a release: a host has it from its watches (live_view.h), a command from
// requests (request_view.h).
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
  // Call this before reading resources of that kind. When the task has finished, a view with
  // watches knows them.
  [[nodiscard]] virtual io::Task<Result<>> watch_children(kube::Resource resource,
                                                          std::stop_token stop) = 0;
  // A resource of any release that is known without a request; null if there is none, or if the
  // view has no watches. May be bare (kube::Object::is_bare).
  [[nodiscard]] virtual kube::ObjectPtr seen(const ResourceRef& ref) const = 0;
  // The same; null also if it is bare.
  [[nodiscard]] kube::ObjectPtr child(const ResourceRef& ref) const;
  // The present state of a resource of any release; null if there is none.
  [[nodiscard]] virtual io::Task<Result<kube::ObjectPtr>> look_at_child(kube::GroupVersionKind gvk,
                                                                        ResourceRef ref,
                                                                        std::stop_token stop) = 0;

  // An object that a flight of `instance` looks up beyond its release; null if there is none.
  [[nodiscard]] virtual io::Task<Result<kube::ObjectPtr>> external(ResourceRef instance,
                                                                   kube::Resource resource,
                                                                   kube::ObjectKey key,
                                                                   std::stop_token stop) = 0;

  // Once the task has finished, changes of that object are reported to `instance`. A view without
  // watches reports nothing.
  [[nodiscard]] virtual io::Task<Result<>> follow(ResourceRef instance, kube::Resource resource,
                                                  kube::ObjectKey key, std::stop_token stop) = 0;

  // An object of any owner: the known child, or else by a request. Null if there is none.
  [[nodiscard]] io::Task<Result<kube::ObjectPtr>> read(kube::Resource resource, kube::ObjectKey key,
                                                       std::stop_token stop);
  // The same with the rights of `client`, which may have another identity.
  [[nodiscard]] io::Task<Result<kube::ObjectPtr>> read_as(kube::Client client,
                                                          kube::Resource resource,
                                                          kube::ObjectKey key,
                                                          std::stop_token stop);

 private:
  // The client of this program itself, whatever identity carries out a release.
  [[nodiscard]] virtual const kube::Client& own_client() const = 0;
};

}  // namespace hangar::airways
