// An Airway as a struct: what its manifest says, checked, with yoke's defaults.
#pragma once

#include "airways/matcher.h"
#include "base/result.h"
#include "base/time.h"
#include "json/value.h"
#include "kube/object.h"
#include "wasm/limits.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::airways {

inline constexpr std::string_view kAirwayApiVersion = "yoke.cd/v1alpha1";
inline constexpr std::string_view kAirwayKind = "Airway";
[[nodiscard]] kube::Resource airway_resource();

// When an instance is evaluated again besides a change of its own.
enum class Mode : std::uint8_t {
  Standard,      // Never (but fixDriftInterval).
  Static,        // Never; changes of children are refused at admission.
  Dynamic,       // Any change of a child, or of something looked up.
  Subscription,  // Changes of what the last run looked up.
};
[[nodiscard]] std::string_view name_of(Mode mode);
[[nodiscard]] std::optional<Mode> mode_of(std::string_view name);

struct PruneOptions {
  bool crds = false;        // Delete CustomResourceDefinitions; orphaned otherwise.
  bool namespaces = false;  // Delete Namespaces; orphaned otherwise.
  bool operator==(const PruneOptions&) const = default;
};

struct Airway {
  std::string name;
  std::string uid;
  std::int64_t generation = 0;

  std::string flight_url;
  std::string flight_checksum;  // sha256 of the uncompressed module; empty: as the URL says.
  std::string converter_url;    // Empty: instances are not converted.
  std::string converter_checksum;
  std::vector<std::string> object_path;  // Empty: the whole instance goes to stdin.
  Mode mode = Mode::Standard;
  bool cluster_access = false;
  std::vector<Matcher> resource_access_matchers;
  Duration fix_drift_interval{0};  // 0: none.
  std::optional<Duration> timeout =
      limits::kGuestCallMax;  // Nothing ("-1s"): the Airway wants none.
  bool insecure = false;
  bool skip_admission_webhook = false;
  std::optional<std::uint32_t> history_max = 2;  // Nothing (negative): unlimited.
  PruneOptions prune;
  std::uint32_t memory_mib_max = 0;  // 0: the host's own limit.

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

// The document for a flight's stdin: the instance, or what is at spec.objectPath (null if missing).
// InvalidInput when the path leads through what is no object.
[[nodiscard]] Result<json::Value> flight_input(const Airway& airway, const json::Value& instance);

}  // namespace hangar::airways
