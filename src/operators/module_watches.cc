#include "operators/module_watches.h"

#include "kube/core_resources.h"
#include "kube/scope.h"

#include <utility>

namespace hangar::operators {

void ModuleWatches::follow(const kube::ObjectKey& follower, const kube::ObjectKey& config_map) {
  Followed& followed = followed_[follower];
  if (followed.subscription && followed.config_map == config_map) return;
  followed.config_map = config_map;
  followed.subscription = cache_.subscribe(
      {.resource = kube::config_map_resource(),
       .namespace_ = config_map.namespace_,
       .field_selector = "metadata.name=" + config_map.name,
       .detail = kube::Detail::Metadata},
      {.on_delta = [this, follower](const kube::Delta&) { on_change_(follower); }});
}

}  // namespace hangar::operators
