#include "reconcile/predicates.h"

#include "kube/cache/store.h"
#include "kube/object.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace hangar::reconcile {

namespace {

bool is_modification(const kube::Delta& delta) {
  return delta.type == kube::Delta::Type::Modified && delta.previous != nullptr;
}

}  // namespace

bool generation_changed(const kube::Delta& delta) {
  if (!is_modification(delta)) return true;
  return delta.previous->generation() != delta.object->generation() ||
         delta.previous->is_being_deleted() != delta.object->is_being_deleted();
}

// resourceVersions of one resource type are ordered numbers wherever etcd stores them; a version
// that is not a number is not compared.
bool is_older(std::string_view left, std::string_view right) {
  const std::optional<std::uint64_t> left_number = kube::parse_version(left);
  const std::optional<std::uint64_t> right_number = kube::parse_version(right);
  return left_number && right_number && *left_number < *right_number;
}

}  // namespace hangar::reconcile
