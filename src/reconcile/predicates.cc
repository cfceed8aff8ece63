#include "reconcile/predicates.h"

#include "json/value.h"
#include "kube/cache/store.h"

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

}  // namespace hangar::reconcile
