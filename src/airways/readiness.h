// Whether a live resource is ready: yoke's rules for each kind.
#pragma once

#include "airways/resource_ref.h"
#include "base/result.h"
#include "json/value.h"
#include "kube/object.h"
#include "reconcile/readiness.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::airways {

using reconcile::Readiness;

// A rule in Lua: a script that returns a function of the resource.
struct LuaScript {
  std::string name;    // The key, such as "Cluster.db.io": Lua's errors begin with it.
  std::string source;  // "default/rules": the ConfigMap.
  std::string text;
  std::string digest;  // Of all of it.
};

// Users' rules for kinds without a built-in rule: ConfigMaps labelled `resource.yoke.cd/readiness
// in (lua,conditions)`, data `Kind.group` or `_.group` -> condition types, or a script in Lua.
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
    std::vector<std::string> conditions;
    std::shared_ptr<const LuaScript> script;  // Null: the conditions decide.
  };
  // The rule for the kind itself, else for its group; null if there is none.
  [[nodiscard]] const Rule* find(const kube::GroupKind& kind) const;
  [[nodiscard]] bool has_scripts() const;

 private:
  std::map<kube::GroupKind, Rule> rules_;  // kind "_": the whole group.
};

// Facts that are not in the object itself.
struct ReadinessFacts {
  // Needed if needs_endpoint_slices(): whether a discovery.k8s.io EndpointSlice with label
  // `kubernetes.io/service-name: <name>` exists in the Service's namespace.
  bool has_endpoint_slice = false;
  const CustomReadiness* custom = nullptr;
  // Needed if deciding_script() is not null: what that script says.
  std::optional<Readiness> scripted = std::nullopt;
};
[[nodiscard]] bool needs_endpoint_slices(const json::Value& object);
// The script that decides whether `live` is ready; null if something else decides.
[[nodiscard]] std::shared_ptr<const LuaScript> deciding_script(const json::Value& live,
                                                               const CustomReadiness& custom);

// `live`: the object as the API server has it. One that is being deleted is not ready.
[[nodiscard]] Readiness readiness_of(const json::Value& live, const ReadinessFacts& facts = {});

// A resource that has failed counts before one that is not ready.
[[nodiscard]] constexpr bool is_worse(const Readiness& one, const Readiness& other) {
  return one.state > other.state;
}

}  // namespace hangar::airways
