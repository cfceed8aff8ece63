// Which release a resource belongs to, and what marks it as such.
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

// The field manager of every apply. yoke's own, so that a release made by one host is taken over by
// the other with its field ownership.
inline constexpr std::string_view kFieldManager = "yoke";
// And of what is written to Airways and instances themselves.
inline constexpr std::string_view kControllerFieldManager = "yoke.cd/atc";

inline constexpr std::string_view kInstanceFinalizer = "yoke.cd/mayday.flight";
inline constexpr std::string_view kAirwayFinalizer = "yoke.cd/strip.airway";

inline constexpr std::string_view kManagedByLabel = "app.kubernetes.io/managed-by";
inline constexpr std::string_view kManagedBy = "atc.yoke";
inline constexpr std::string_view kManagedByCommand = "yoke";  // What a person has released.
inline constexpr std::string_view kReleaseAnnotation = "instance.atc.yoke.cd/release";
inline constexpr std::string_view kNamespaceAnnotation = "instance.atc.yoke.cd/namespace";
inline constexpr std::string_view kInstanceRefAnnotation = "instance.atc.yoke.cd/instanceRef";

// One instance's release.
struct Release {
  std::string name;        // "examples.com.Backend.default.test": also argv[0] and YOKE_RELEASE.
  std::string namespace_;  // Where its history lives; "default" for cluster-scoped instances.
  // As which its revisions are kept: the name, but for Flights, which share theirs with others.
  std::string history_name;
  ResourceRef instance;
  std::string instance_api_version;
  std::string instance_uid;
  // Instances of cluster-scoped kinds may make resources in any namespace.
  bool cross_namespace = false;
  std::string managed_by = std::string(kManagedBy);  // The label of what it makes.

  // A flight that a person runs without a resource has none.
  [[nodiscard]] bool has_instance() const { return !instance.name.empty(); }
  // "default/examples.com.Backend.default.test", as owner_of() says it of what it has made.
  [[nodiscard]] std::string owner() const { return namespace_ + "/" + name; }
  // Whether it has made `object`. The name of a Flight is any name, so that a ClusterFlight `x`, a
  // Flight `x` of `default` and a release that a person made there have one owner(): which of them
  // it is, the annotation instanceRef says. yoke's host sets none for Flights; then an owner
  // reference has to.
  [[nodiscard]] bool owns(const json::Value& object) const;
};

// The release of an instance, or of a Flight, as the API server has it (with namespace and uid).
[[nodiscard]] Release release_of(const json::Value& instance);

// The release whose history is kept as `history_name` in `namespace_`. Whose it is stands on the
// resources that it has made, `stages`; that it is another one than its history says does not: who
// may write Secrets there could name any.
[[nodiscard]] Release recorded_release(std::string history_name, std::string namespace_,
                                       const Stages& stages);

// The owner that the annotations (or yoke's older labels) of a resource name; empty: none.
[[nodiscard]] std::string owner_of(const json::Value& object);
// Whether an owner reference of `object` names that uid.
[[nodiscard]] bool is_owned_by(const json::Value& object, std::string_view uid);
// The instance that a child's instanceRef annotation names.
[[nodiscard]] std::optional<ResourceRef> instance_of(const json::Value& object);

// What may be taken over besides the release's own and what does not exist yet.
enum class Adoption : std::uint8_t {
  Refuse,   // Nothing: `yoke takeoff` without flags.
  Unowned,  // What no release and no controller owns. The default for Airways.
  Force,    // Everything: yoke's Air Traffic Controller, `takeoff -force-ownership`.
};

// InvalidInput: `expected release "a/b" but resource is already owned by "c/d"`.
[[nodiscard]] Result<> may_take_over(const json::Value& live, const Release& release,
                                     Adoption adoption);

// Whether a kind is namespaced, for every kind of a release.
using Scopes = std::map<kube::GroupKind, bool>;
// Of the kinds whose CustomResourceDefinition is in the release itself: discovery does not know
// them yet.
[[nodiscard]] Scopes scopes_defined_in(const Stages& stages);
// The other kinds: the caller asks discovery for each and adds the answer. Each once.
[[nodiscard]] std::vector<kube::GroupVersionKind> kinds_to_discover(const Stages& stages);

// Makes a flight's resources the release's: label, annotations, owner reference to the instance,
// namespaces (namespaced kinds without one get the release's; cluster-scoped kinds lose it), and
// none of the fields only the server sets. Errors: InvalidInput: a namespace that is not allowed
// (`Multiple namespaces detected (if desired enable multinamespace releases)`), a kind that is not
// in `scopes`, duplicates.
// A cluster-scoped resource of a namespaced instance gets no owner reference: the garbage collector
// could not resolve it. The finalizer prunes it.
[[nodiscard]] Result<> prepare_release(Stages& stages, const Release& release,
                                       const Scopes& scopes);

// A merge patch that lets go of `live`: label, annotations and the owner references to the instance
// (for CustomResourceDefinitions and Namespaces, which stay in the cluster). Holds the
// resourceVersion, so Conflict means: read again. Nothing: there is nothing of ours on it.
[[nodiscard]] std::optional<json::Value> orphan_patch(const json::Value& live,
                                                      const Release& release);

}  // namespace hangar::airways
