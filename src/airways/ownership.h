// Which release a resource belongs to, and the marks that say so.
#pragma once

#include "airways/resource_ref.h"
#include "airways/terms.h"
#include "base/result.h"
#include "json/value.h"
#include "kube/object.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::airways {

// The field manager of every apply. It is yoke's own, so that each host takes over the releases of
// the other with their field ownership.
inline constexpr std::string_view kFieldManager = "yoke";
// The field manager of writes to Airways and instances themselves.
inline constexpr std::string_view kControllerFieldManager = "yoke.cd/atc";

inline constexpr std::string_view kInstanceFinalizer = "yoke.cd/mayday.flight";
inline constexpr std::string_view kAirwayFinalizer = "yoke.cd/strip.airway";

inline constexpr std::string_view kManagedByLabel = "app.kubernetes.io/managed-by";
inline constexpr std::string_view kManagedBy = "atc.yoke";
inline constexpr std::string_view kManagedByCommand = "yoke";  // For releases by a command.
inline constexpr std::string_view kReleaseAnnotation = "instance.atc.yoke.cd/release";
inline constexpr std::string_view kNamespaceAnnotation = "instance.atc.yoke.cd/namespace";
inline constexpr std::string_view kInstanceRefAnnotation = "instance.atc.yoke.cd/instanceRef";
// The mode that an approved override gives the instance (overrides.h). Resources of instances
// without such an override do not have it. The policy that protects children reads it.
inline constexpr std::string_view kModeAnnotation = "hangar.dev/mode";

// The release of one instance.
struct Release {
  std::string name;        // "examples.com.Backend.default.test": also argv[0] and YOKE_RELEASE.
  std::string namespace_;  // Of its history; "default" for cluster-scoped instances.
  // The name under which its revisions are kept: `name`, except for Flights, whose names other
  // releases may have.
  std::string history_name;
  ResourceRef instance;
  std::string instance_api_version;
  std::string instance_uid;
  // Instances of cluster-scoped kinds may create resources in any namespace.
  bool cross_namespace = false;
  std::string managed_by = std::string(kManagedBy);  // The label of its resources.
  std::string override_mode = {};                    // From an approved override; empty: none.

  // False for a flight that a user runs without a resource.
  [[nodiscard]] bool has_instance() const { return !instance.name.empty(); }
  // "default/examples.com.Backend.default.test", as owner_of() returns it for its resources.
  [[nodiscard]] std::string owner() const { return namespace_ + "/" + name; }
  // Whether it has made `object`. A Flight may have any name, so a ClusterFlight `x`, a Flight `x`
  // in `default` and a release `x` that a user has made there have the same owner(). The annotation
  // instanceRef tells them apart. yoke's host does not set it for Flights; then an owner reference
  // has to.
  [[nodiscard]] bool owns(const json::Value& object) const;
};

// The release of an instance, or of a Flight, as the API server has it (with namespace and uid).
[[nodiscard]] Release release_of(const json::Value& instance);

// The release whose history is kept as `history_name` in `namespace_`. The marks on its resources,
// `stages`, identify its instance. Marks that name another release than the history does are
// ignored: a user who may write Secrets there could name any.
[[nodiscard]] Release recorded_release(std::string history_name, std::string namespace_,
                                       const Stages& stages);

// The owner that the annotations (or yoke's older labels) of a resource name; empty: none.
[[nodiscard]] std::string owner_of(const json::Value& object);
// Whether an owner reference of `object` names that uid.
[[nodiscard]] bool is_owned_by(const json::Value& object, std::string_view uid);
// The instance that a child's instanceRef annotation names.
[[nodiscard]] std::optional<ResourceRef> instance_of(const json::Value& object);
// Whether the release of `instance` may contain `child`: that of a namespaced instance contains
// resources of its namespace, and cluster-scoped ones.
[[nodiscard]] bool may_contain(const ResourceRef& instance, const ResourceRef& child);

// Existing resources that a release may take over, besides its own.
enum class Adoption : std::uint8_t {
  Refuse,   // Nothing: `yoke takeoff` without flags.
  Unowned,  // Resources that no release and no controller owns. The default for Airways.
  Force,    // Everything: yoke's Air Traffic Controller, `takeoff -force-ownership`.
};

// InvalidInput: `expected release "a/b" but resource is already owned by "c/d"`.
[[nodiscard]] Result<> may_take_over(const json::Value& live, const Release& release,
                                     Adoption adoption);

// Whether a kind is namespaced, for every kind of a release.
using Scopes = std::map<kube::GroupKind, bool>;
// For the kinds whose CustomResourceDefinition is in the release itself: discovery does not know
// them yet.
[[nodiscard]] Scopes scopes_defined_in(const Stages& stages);
// All other kinds, each once. The caller asks discovery for them and adds the answers.
[[nodiscard]] std::vector<kube::GroupVersionKind> kinds_to_discover(const Stages& stages);
// The prefix of an error of discovery, in yoke's words: it names the first resource of that kind.
[[nodiscard]] std::string while_discovering(const kube::GroupVersionKind& gvk,
                                            const Stages& stages);

// Turns a flight's resources into the release's. Sets label, annotations, owner reference to the
// instance, and namespaces (a namespaced kind without one gets the release's, a cluster-scoped kind
// loses it). Removes fields that only the server sets, and a mode that the flight printed. Errors:
// InvalidInput: a namespace that is not allowed (`Multiple namespaces detected (if desired enable
// multinamespace releases)`), a kind that is not in `scopes`, duplicates. A cluster-scoped resource
// of a namespaced instance gets no owner reference: the garbage collector could not resolve it. The
// finalizer prunes it.
[[nodiscard]] Result<> prepare_release(Stages& stages, const Release& release,
                                       const Scopes& scopes);

// A merge patch that removes our marks from `live`: label, annotations and the owner references to
// the instance (for CustomResourceDefinitions and Namespaces, which stay in the cluster). It
// contains the resourceVersion, so Conflict means: read again. std::nullopt if `live` has no marks.
[[nodiscard]] std::optional<json::Value> orphan_patch(const json::Value& live,
                                                      const Release& release);

}  // namespace hangar::airways
