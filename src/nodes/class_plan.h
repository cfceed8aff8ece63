// Decides which RuntimeClasses to create and to remove, so that the cluster has the wanted ones.
// No I/O.
#pragma once

#include "json/value.h"
#include "kube/object.h"
#include "nodes/manifests.h"
#include "nodes/rollout.h"

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::nodes {

// By name.
using ClassManifests = std::map<std::string, json::Value>;

// One manifest for each of `classes` and, if there is a probe, the class without scheduling with
// which it runs.
[[nodiscard]] ClassManifests wanted_classes(std::span<const RuntimeClass> classes,
                                            const Policy& policy, std::string_view probe_class);

struct ClassPlan {
  struct Removal {  // Only the object with this uid.
    std::string name;
    std::string uid;
    bool operator==(const Removal&) const = default;
  };
  // Removals come first: the handler of a class is immutable, so a class that is still wanted is
  // created again.
  std::vector<Removal> remove = {};
  ClassManifests create = {};
  // Wanted names that are taken by classes of others. Those classes are left unchanged.
  std::vector<std::string> foreign = {};
};
[[nodiscard]] ClassPlan plan_classes(ClassManifests wanted, std::span<const json::Value> present);

}  // namespace hangar::nodes
