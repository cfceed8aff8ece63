#include "workflows/sighting.h"

#include "base/assert.h"
#include "reconcile/predicates.h"

namespace hangar::workflows {

namespace {

json::Value event_about(const OwnedResource& resource, std::string_view type) {
  return json::Object{{"type", type},
                      {"resourceName", resource.name},
                      {"apiVersion", resource.api_version},
                      {"kind", resource.kind}};
}

}  // namespace

bool is_followed(const OwnedResource& resource) {
  return !resource.seen.empty() && resource.seen != kSeenDeleted;
}

std::optional<ResourceChange> change_of(const OwnedResource& resource, const Sighting& sighting) {
  HANGAR_ASSERT(is_followed(resource), "only what the machine knows can have changed for it");
  if (sighting.live) {
    if (!reconcile::is_older(resource.seen, *sighting.live)) return std::nullopt;
    return ResourceChange{.seen = std::string(*sighting.live),
                          .event = event_about(resource, "K8S_RESOURCE_CHANGED")};
  }
  if (!reconcile::is_older(resource.seen, sighting.watch)) return std::nullopt;
  return ResourceChange{.seen = std::string(kSeenDeleted),
                        .event = event_about(resource, "K8S_RESOURCE_DELETED")};
}

}  // namespace hangar::workflows
