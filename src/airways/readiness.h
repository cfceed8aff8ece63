// Whether a live resource is ready: yoke's rules for each kind.
#pragma once

#include "airways/resource_ref.h"
#include "base/result.h"
#include "json/value.h"
#include "kube/object.h"
#include "reconcile/readiness.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::airways {

using reconcile::Readiness;

// Users' rules for kinds without a built-in rule: ConfigMaps labelled `resource.yoke.cd/readiness
// in (lua,conditions)`, data `Kind.group` or `_.group` -> condition types. Rules in Lua are not
// run: a kind with one is never ready, and the reason says so.
class CustomReadiness {
 public:
  static constexpr std::string_view kLabel = "resource.yoke.cd/readiness";
  static constexpr std::string_view kLabelSelector =
      "resource.yoke.cd/readiness in (lua,conditions)";

  CustomReadiness() = default;
  // If two have a rule for the same kind, the later one counts; pass them in the order of their
  // keys.
  explicit CustomReadiness(const std::vector<json::Value>& config_maps);

  struct Rule {
    bool is_lua = false;
    std::vector<std::string> conditions;
    bool operator==(const Rule&) const = default;
  };
  // The rule for the kind itself, else for its group; null if there is none.
  [[nodiscard]] const Rule* find(const kube::GroupKind& kind) const;
  // Rules that cannot be followed, one sentence each.
  [[nodiscard]] std::vector<std::string> unsupported() const;

 private:
  std::map<kube::GroupKind, Rule> rules_;  // kind "_": the whole group.
};

// Facts that are not in the object itself.
struct ReadinessFacts {
  // Needed if needs_endpoint_slices(): whether a discovery.k8s.io EndpointSlice with label
  // `kubernetes.io/service-name: <name>` exists in the Service's namespace.
  bool has_endpoint_slice = false;
  const CustomReadiness* custom = nullptr;
};
[[nodiscard]] bool needs_endpoint_slices(const json::Value& object);

// `live`: the object as the API server has it. One that is being deleted is not ready.
[[nodiscard]] Readiness readiness_of(const json::Value& live, const ReadinessFacts& facts = {});

}  // namespace hangar::airways
