// Built-in collections that several folders, or several parts of one, read.
#pragma once

#include "kube/object.h"

namespace hangar::kube {

[[nodiscard]] inline Resource cluster_role_resource() {
  return {.group = "rbac.authorization.k8s.io",
          .version = "v1",
          .plural = "clusterroles",
          .kind = "ClusterRole",
          .namespaced = false};
}
[[nodiscard]] inline Resource config_map_resource() {
  return {.version = "v1", .plural = "configmaps", .kind = "ConfigMap", .namespaced = true};
}
[[nodiscard]] inline Resource controller_revision_resource() {
  return {.group = "apps",
          .version = "v1",
          .plural = "controllerrevisions",
          .kind = "ControllerRevision",
          .namespaced = true};
}
[[nodiscard]] inline Resource event_resource() {
  return {.version = "v1", .plural = "events", .kind = "Event", .namespaced = true};
}
[[nodiscard]] inline Resource namespace_resource() {
  return {.version = "v1", .plural = "namespaces", .kind = "Namespace", .namespaced = false};
}
[[nodiscard]] inline Resource pod_resource() {
  return {.version = "v1", .plural = "pods", .kind = "Pod", .namespaced = true};
}
[[nodiscard]] inline Resource secret_resource() {
  return {.version = "v1", .plural = "secrets", .kind = "Secret", .namespaced = true};
}

}  // namespace hangar::kube
