// Which RuntimeClasses to create and to remove, so that the cluster has those that are wanted.
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

// One for each of `classes`, and the one without scheduling that the probe runs with, if there is
// a probe.
[[nodiscard]] ClassManifests wanted_classes(std::span<const RuntimeClass> classes,
                                            const Policy& policy, std::string_view probe_class);

struct ClassPlan {
  struct Removal {  // Only this very object.
    std::string name;
    std::string uid;
    bool operator==(const Removal&) const = default;
  };
  // The removals come first: the handler of a class cannot be changed, so a class that is still
  // wanted is created again.
  std::vector<Removal> remove = {};
  ClassManifests create = {};
  // Wanted names that somebody else's classes have. Those stay as they are.
  std::vector<std::string> foreign = {};
};
[[nodiscard]] ClassPlan plan_classes(ClassManifests wanted, std::span<const json::Value> present);

}  // namespace hangar::nodes
