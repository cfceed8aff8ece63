#include "airways/resource_ref.h"

#include "base/result.h"
#include "base/text.h"
#include "json/value.h"
#include "kube/object.h"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace hangar::airways {

std::string ResourceRef::to_string() const {
  return namespace_ + "/" + kind.to_string() + ":" + name;
}

bool is_namespace(const kube::GroupKind& kind) {
  return kind.group.empty() && kind.kind == "Namespace";
}

bool is_crd(const kube::GroupKind& kind) {
  return kind.group == "apiextensions.k8s.io" && kind.kind == "CustomResourceDefinition";
}

ResourceRef ref_of(const json::Value& object) {
  const kube::GroupVersionKind gvk =
      kube::make_gvk(json::string_at(object, {"apiVersion"}), json::string_at(object, {"kind"}));
  return {.kind = gvk.group_kind(),
          .namespace_ = std::string(json::string_at(object, {"metadata", "namespace"})),
          .name = std::string(json::string_at(object, {"metadata", "name"}))};
}

Result<ResourceRef> parse_ref(std::string_view text) {
  const auto bad = [&] {
    return fail(ErrorKind::InvalidInput,
                "expected namespace/Kind.group:name, found \"" + std::string(text) + "\"");
  };
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return bad();
  const std::string_view rest = text.substr(slash + 1);
  const std::size_t colon = rest.find(':');
  if (colon == std::string_view::npos) return bad();
  const std::string_view kind = rest.substr(0, colon);
  const std::size_t dot = kind.find('.');

  ResourceRef ref;
  ref.namespace_ = text.substr(0, slash);
  ref.kind.kind = kind.substr(0, dot);
  if (dot != std::string_view::npos) {
    ref.kind.group = kind.substr(dot + 1);
    if (ref.kind.group.empty()) return bad();
  }
  ref.name = rest.substr(colon + 1);
  if (ref.kind.kind.empty() || ref.name.empty()) return bad();
  return ref;
}

std::string canonical_name(const kube::GroupVersionKind& gvk, std::string_view namespace_,
                           std::string_view name) {
  std::string text(namespace_.empty() ? "_" : namespace_);
  for (const std::string_view part :
       {gvk.group.empty() ? std::string_view("core") : std::string_view(gvk.group),
        std::string_view(gvk.version), std::string_view(gvk.kind), name}) {
    text += '/';
    text += part;
  }
  return to_lower(text);
}

std::string canonical_name(const json::Value& object) {
  return canonical_name(
      kube::make_gvk(json::string_at(object, {"apiVersion"}), json::string_at(object, {"kind"})),
      json::string_at(object, {"metadata", "namespace"}),
      json::string_at(object, {"metadata", "name"}));
}

std::size_t resource_count(const Stages& stages) {
  std::size_t count = 0;
  for (const Stage& stage : stages)
    count += stage.size();
  return count;
}

}  // namespace hangar::airways

std::size_t std::hash<hangar::airways::ResourceRef>::operator()(
    const hangar::airways::ResourceRef& ref) const noexcept {
  std::size_t hash = 0;
  for (const std::string_view part :
       {std::string_view(ref.kind.group), std::string_view(ref.kind.kind),
        std::string_view(ref.namespace_), std::string_view(ref.name)}) {
    // The mixing of boost::hash_combine: the order of the parts counts.
    hash ^= std::hash<std::string_view>{}(part) + 0x9e3779b97f4a7c15ULL + (hash << 6) + (hash >> 2);
  }
  return hash;
}
