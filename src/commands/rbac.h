// Kinds of rbac.authorization.k8s.io, and parts of their rules.
#pragma once

#include "kube/object.h"

#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::commands {

inline constexpr std::string_view kRbacGroup = "rbac.authorization.k8s.io";

// Verbs for resources, in the usual order.
inline constexpr std::array<std::string_view, 8> kResourceVerbs = {
    "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"};

[[nodiscard]] inline kube::Resource rbac_resource(std::string plural, std::string kind,
                                                  bool is_namespaced) {
  return {.group = std::string(kRbacGroup),
          .version = "v1",
          .plural = std::move(plural),
          .kind = std::move(kind),
          .namespaced = is_namespaced};
}
[[nodiscard]] inline kube::Resource role_resource() {
  return rbac_resource("roles", "Role", true);
}
[[nodiscard]] inline kube::Resource role_binding_resource() {
  return rbac_resource("rolebindings", "RoleBinding", true);
}
[[nodiscard]] inline kube::Resource cluster_role_binding_resource() {
  return rbac_resource("clusterrolebindings", "ClusterRoleBinding", false);
}

}  // namespace hangar::commands
