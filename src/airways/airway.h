// An Airway as a struct: its manifest, checked, with yoke's defaults.
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

  Terms terms;                // For all its instances.
  std::string converter_url;  // Empty: instances are not converted.
  std::string converter_checksum;

  // spec.template: the spec of a CustomResourceDefinition. crd_template.h makes the CRD.
  json::Value template_;
  // The kind of its instances in its storage version, which is the version that flights see.
  kube::Resource instances;
};

// Checks everything that does not need the cluster: the fields, the versions (exactly one is
// stored), and that the Airway's name is the template's `<plural>.<group>`. InvalidInput names the
// field ("spec.mode: ..."). A deletion does not need this: the CRD has the Airway's name.
[[nodiscard]] Result<Airway> parse_airway(const json::Value& object);

// Optional parts that this host has.
struct Means {
  bool has_webhooks = false;
};
// Features of the Airway that this host cannot provide: one sentence each, for its status.
[[nodiscard]] std::vector<std::string> unsupported_of(const Airway& airway, Means means);
// The same for one instance. Override annotations need an admission webhook that checks the user
// who sets them; without webhooks they are ignored.
[[nodiscard]] std::vector<std::string> unsupported_of_instance(const json::Value& instance);

}  // namespace hangar::airways
