#include "airways/release_view.h"

#include "base/result.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/object.h"

#include <expected>
#include <stop_token>
#include <utility>

namespace hangar::airways {

kube::ObjectPtr ReleaseView::child(const ResourceRef& ref) const {
  kube::ObjectPtr known = seen(ref);
  return known && known->is_bare() ? nullptr : known;
}

io::Task<Result<kube::ObjectPtr>> ReleaseView::read(kube::Resource resource, kube::ObjectKey key,
                                                    std::stop_token stop) {
  return read_as(own_client(), std::move(resource), std::move(key), std::move(stop));
}

io::Task<Result<kube::ObjectPtr>> ReleaseView::read_as(kube::Client client, kube::Resource resource,
                                                       kube::ObjectKey key, std::stop_token stop) {
  const kube::GroupVersionKind gvk = resource.gvk();
  if (kube::ObjectPtr known =
          child({.kind = gvk.group_kind(), .namespace_ = key.namespace_, .name = key.name})) {
    co_return known;
  }
  Result<json::Value> live =
      co_await client.get(std::move(resource), std::move(key), std::move(stop));
  if (!live) {
    if (live.error().kind() == ErrorKind::NotFound) co_return kube::ObjectPtr();
    co_return std::unexpected(std::move(live).error());
  }
  co_return kube::Object::make(*std::move(live), gvk);
}

}  // namespace hangar::airways
