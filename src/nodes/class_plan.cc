#include "nodes/class_plan.h"

#include "nodes/names.h"

#include <utility>

namespace hangar::nodes {

namespace {

bool is_ours(const json::Value& runtime_class) {
  return kube::label_of(runtime_class, kOwnerLabel) == kOwner;
}

bool has_spec_of(const json::Value& present, const json::Value& wanted) {
  const auto part = [](const json::Value& of, std::string_view member) {
    const json::Value* const found = json::find(of, {member});
    return found == nullptr ? json::Value() : *found;
  };
  return json::equal(part(present, "handler"), part(wanted, "handler")) &&
         json::equal(part(present, "scheduling"), part(wanted, "scheduling"));
}

}  // namespace

ClassManifests wanted_classes(std::span<const RuntimeClass> classes, const Policy& policy,
                              std::string_view probe_class) {
  ClassManifests wanted;
  for (const RuntimeClass& one : classes) {
    wanted[one.name] = runtime_class_manifest(one, Scheduling::Provisioned);
    const std::string probe = probe_class_name(one.name);
    if (policy.has_probe && probe == probe_class) {
      wanted[probe] = runtime_class_manifest(one, Scheduling::Anywhere);
    }
  }
  return wanted;
}

ClassPlan plan_classes(ClassManifests wanted, std::span<const json::Value> present) {
  ClassPlan plan;
  for (const json::Value& one : present) {
    std::string name(json::string_at(one, {"metadata", "name"}));
    const auto found = wanted.find(name);
    const bool is_wanted = found != wanted.end();
    if (!is_ours(one)) {
      if (!is_wanted) continue;
      wanted.erase(found);
      plan.foreign.push_back(std::move(name));
    } else if (is_wanted && has_spec_of(one, found->second)) {
      wanted.erase(found);
    } else {
      plan.remove.push_back(
          {.name = std::move(name), .uid = std::string(json::string_at(one, {"metadata", "uid"}))});
    }
  }
  plan.create = std::move(wanted);
  return plan;
}

}  // namespace hangar::nodes
