#include "console/projection.h"

#include <array>
#include <string>

namespace hangar::console {

namespace {

constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

void project_object(json::Value& object, bool keeps_content) {
  json::erase_at(object, {"metadata", "managedFields"});
  json::erase_at(object, {"metadata", "annotations", kLastApplied});
  if (keeps_content || !object.is_object()) return;
  json::Object kept;
  for (const std::string_view name : {"apiVersion", "kind", "metadata", "status"}) {
    if (const json::Value* const member = json::find(object, {name})) kept[name] = *member;
  }
  json::Object spec;
  for (const std::string_view name : {"replicas", "completions", "suspend", "type", "nodeName"}) {
    if (const json::Value* const member = json::find(object, {"spec", name})) spec[name] = *member;
  }
  if (!spec.empty()) kept["spec"] = std::move(spec);
  if (json::Value* const annotations = kept.if_contains("metadata")) {
    json::erase_at(*annotations, {"annotations"});
  }
  object = std::move(kept);
}

}  // namespace

void project(json::Value& answer, std::string_view group, std::string_view plural) {
  const bool is_builtin = group.empty() || group == "apps" || group == "batch";
  const bool keeps_content = !is_builtin || plural == "events";
  json::Value* const items = json::find(answer, {"items"});
  if (items == nullptr || !items->is_array()) return project_object(answer, keeps_content);
  for (json::Value& item : items->get_array())
    project_object(item, keeps_content);
}

}  // namespace hangar::console
