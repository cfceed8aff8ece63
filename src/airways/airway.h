// An Airway as a struct: what its manifest says, checked, with yoke's defaults.
#pragma once

#include "airways/terms.h"
#include "base/result.h"
#include "json/value.h"
#include "kube/object.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::airways {

inline constexpr std::string_view kAirwayApiVersion = "yoke.cd/v1alpha1";
inline constexpr std::string_view kAirwayKind = "Airway";
[[nodiscard]] kube::Resource airway_resource();

struct Airway {
  std::string name;
  std::string uid;
  std::int64_t generation = 0;

  Terms terms;                // Of all its instances.
  std::string converter_url;  // Empty: instances are not converted.
  std::string converter_checksum;

  // spec.template: the spec of a CustomResourceDefinition. crd_template.h makes the CRD of it.
  json::Value template_;
  // The kind of its instances in the version that is stored, which is the one flights see.
  kube::Resource instances;
};

// Checks all that does not need the cluster: fields, versions (exactly one is stored), and that the
// Airway's name is the template's `<plural>.<group>`. Errors: InvalidInput that names the field
// ("spec.mode: ..."). An Airway that is being deleted needs none of this: its CRD has its name.
[[nodiscard]] Result<Airway> parse_airway(const json::Value& object);

// What this host has, beside what every host can.
struct Means {
  bool has_webhooks = false;
};
// What the Airway asks for and this host cannot do: one sentence each, for its status.
[[nodiscard]] std::vector<std::string> unsupported_of(const Airway& airway, Means means);
// The same for one instance: override annotations need an admission webhook that checks who sets
// them, and are ignored without.
[[nodiscard]] std::vector<std::string> unsupported_of_instance(const json::Value& instance);

}  // namespace hangar::airways
