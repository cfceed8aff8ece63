// Names of the resources of a release: kind without version, namespace, name.
//
// The version is left out on purpose: apps/v1 and apps/v1beta1 show the same object, so prune sets,
// duplicates and lookups must not tell them apart.
#pragma once

#include "base/result.h"
#include "json/value.h"
#include "kube/object.h"

#include <compare>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::airways {

// A resource, or an instance (custom resource) of an Airway.
struct ResourceRef {
  kube::GroupKind kind;
  std::string namespace_;  // Empty for cluster-scoped resources.
  std::string name;

  // "default/Deployment.apps:web", "/Namespace:foo": the form in yoke's annotations and status.
  [[nodiscard]] std::string to_string() const;
  [[nodiscard]] kube::ObjectKey key() const { return {namespace_, name}; }
  auto operator<=>(const ResourceRef&) const = default;
};

// Kinds that other resources of a release may depend on.
[[nodiscard]] bool is_namespace(const kube::GroupKind& kind);
[[nodiscard]] bool is_crd(const kube::GroupKind& kind);

// The ref of a document with a kind and a name; missing parts are empty.
[[nodiscard]] ResourceRef ref_of(const json::Value& object);

// The inverse of to_string(). InvalidInput for any other text.
[[nodiscard]] Result<ResourceRef> parse_ref(std::string_view text);

// "default/apps/v1/deployment/web", "_/core/v1/namespace/foo": how yoke's errors name a resource.
[[nodiscard]] std::string canonical_name(const json::Value& object);
[[nodiscard]] std::string canonical_name(const kube::GroupVersionKind& gvk,
                                         std::string_view namespace_, std::string_view name);

// Resources that are applied together. A flight's resources are a sequence of stages: each is ready
// before the next one begins.
using Stage = std::vector<json::Value>;
using Stages = std::vector<Stage>;

[[nodiscard]] std::size_t resource_count(const Stages& stages);

}  // namespace hangar::airways

template <>
struct std::hash<hangar::airways::ResourceRef> {
  std::size_t operator()(const hangar::airways::ResourceRef& ref) const noexcept;
};
