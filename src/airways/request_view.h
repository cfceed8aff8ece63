// A command's view of a release: a request for each read, with the rights of the user who runs it.
// A user may have rights in one namespace only, where no kind can be watched as a host watches it.
#pragma once

#include "airways/release_view.h"
#include "airways/resource_ref.h"
#include "base/result.h"
#include "budget/consumer.h"
#include "io/task.h"
#include "kube/client.h"
#include "kube/discovery.h"
#include "kube/object.h"

#include <stop_token>
#include <utility>

namespace hangar::airways {

// `client` is copied. Loop thread only.
class RequestView final : public ReleaseView {
 public:
  explicit RequestView(const kube::Client& client) : client_(client), discovery_(client) {}

  [[nodiscard]] kube::Discovery& discovery() override { return discovery_; }
  [[nodiscard]] io::Task<Result<>> watch_children(kube::Resource /*resource*/,
                                                  std::stop_token /*stop*/) override {
    co_return Result<>();
  }
  [[nodiscard]] kube::ObjectPtr seen(const ResourceRef& /*ref*/) const override { return nullptr; }
  [[nodiscard]] io::Task<Result<kube::ObjectPtr>> look_at_child(kube::GroupVersionKind gvk,
                                                                ResourceRef ref,
                                                                std::stop_token stop) override {
    Result<kube::Resource> resource =
        co_await discovery_.find(std::move(gvk), budget::unnamed_consumer(), stop);
    if (!resource && resource.error().kind() == ErrorKind::NotFound) co_return kube::ObjectPtr();
    if (!resource) co_return std::unexpected(std::move(resource).error());
    co_return co_await read(*std::move(resource), ref.key(), std::move(stop));
  }

  [[nodiscard]] io::Task<Result<kube::ObjectPtr>> external(ResourceRef /*instance*/,
                                                           kube::Resource resource,
                                                           kube::ObjectKey key,
                                                           std::stop_token stop) override {
    return read(std::move(resource), std::move(key), std::move(stop));
  }
  [[nodiscard]] io::Task<Result<>> follow(ResourceRef /*instance*/, kube::Resource /*resource*/,
                                          kube::ObjectKey /*key*/,
                                          std::stop_token /*stop*/) override {
    co_return Result<>();
  }

 private:
  [[nodiscard]] const kube::Client& own_client() const override { return client_; }

  const kube::Client client_;
  kube::Discovery discovery_;
};

}  // namespace hangar::airways
