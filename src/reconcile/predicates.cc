#include "reconcile/predicates.h"

#include "json/value.h"
#include "kube/cache/store.h"

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace hangar::reconcile {

namespace {

bool is_modification(const kube::Delta& delta) {
  return delta.type == kube::Delta::Type::Modified && delta.previous != nullptr;
}

bool metadata_differs(const kube::Delta& delta, std::string_view member) {
  const json::Value before = delta.previous->to_value();
  const json::Value after = delta.object->to_value();
  const json::Value* old_member = json::find(before, {"metadata", member});
  const json::Value* new_member = json::find(after, {"metadata", member});
  if (old_member == nullptr || new_member == nullptr) return old_member != new_member;
  return !json::equal(*old_member, *new_member);
}

std::optional<std::uint64_t> to_number(std::string_view resource_version) {
  std::uint64_t number = 0;
  const char* begin = resource_version.data();
  const char* end = begin + resource_version.size();
  const auto [stopped, error] = std::from_chars(begin, end, number);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return number;
}

}  // namespace

bool generation_changed(const kube::Delta& delta) {
  if (!is_modification(delta)) return true;
  return delta.previous->generation() != delta.object->generation() ||
         delta.previous->is_being_deleted() != delta.object->is_being_deleted();
}

bool labels_changed(const kube::Delta& delta) {
  return !is_modification(delta) || metadata_differs(delta, "labels");
}

bool annotations_changed(const kube::Delta& delta) {
  return !is_modification(delta) || metadata_differs(delta, "annotations");
}

bool resource_version_changed(const kube::Delta& delta) {
  return !is_modification(delta) ||
         delta.previous->resource_version() != delta.object->resource_version();
}

// resourceVersions of one resource type are ordered numbers wherever etcd stores them; what is none
// is not compared.
bool is_older(std::string_view left, std::string_view right) {
  const std::optional<std::uint64_t> left_number = to_number(left);
  const std::optional<std::uint64_t> right_number = to_number(right);
  return left_number && right_number && *left_number < *right_number;
}

}  // namespace hangar::reconcile
