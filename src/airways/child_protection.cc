#include "airways/child_protection.h"

#include "airways/acting.h"
#include "airways/airway.h"
#include "airways/flight.h"
#include "airways/ownership.h"
#include "json/value.h"
#include "kube/object.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::airways {

namespace {

// A CEL string literal.
std::string cel_text(std::string_view text) {
  std::string result = "'";
  for (const char one : text) {
    if (one == '\'' || one == '\\') result += '\\';
    result += one;
  }
  return result + "'";
}

json::Object named(std::string_view name, std::string expression) {
  return {{"name", name}, {"expression", std::move(expression)}};
}

// The messages are yoke's.
json::Object validation(std::string expression, std::string_view message) {
  return {{"expression", std::move(expression)}, {"message", message}};
}

std::string annotation_in(std::string_view object, std::string_view key) {
  return fmt::format(
      "(has({0}.metadata.annotations) && {1} in {0}.metadata.annotations ? "
      "{0}.metadata.annotations[{1}] : '')",
      object, cel_text(key));
}

// The fields that the release has applied to `object`, in CEL.
std::string applied_in(std::string_view object) {
  return fmt::format(
      "(has({0}.metadata.managedFields) ? {0}.metadata.managedFields.filter(m, has(m.manager) && "
      "m.manager == {1} && m.operation == 'Apply').map(m, m.fieldsV1) : [])",
      object, cel_text(kFieldManager));
}

// The mode that the release has applied to `object` because of an approved override, in CEL; '' if
// none. Anybody may create an object with this annotation before the release takes it over, so it
// counts only while the release's manager owns it.
std::string overriding_mode_in(std::string_view object) {
  return fmt::format(
      "({0}.exists(f, 'f:metadata' in f && 'f:annotations' in f['f:metadata'] && {1} in "
      "f['f:metadata']['f:annotations']) ? {2} : '')",
      applied_in(object), cel_text(fmt::format("f:{}", kModeAnnotation)),
      annotation_in(object, kModeAnnotation));
}

std::string same_annotation(std::string_view key) {
  return fmt::format("{} == {}", annotation_in("object", key), annotation_in("oldObject", key));
}

std::string annotation_of_params(std::string_view otherwise) {
  return fmt::format(
      "(has(params.metadata.annotations) && {0} in params.metadata.annotations && "
      "params.metadata.annotations[{0}] != '' ? params.metadata.annotations[{0}] : {1})",
      cel_text(kServiceAccountAnnotation), cel_text(otherwise));
}

// What is different for the owners of one kind.
struct Owners {
  std::string_view name;  // Of the policy.
  std::string_view kind;
  std::string_view scope;      // Of the children.
  std::string account = {};    // CEL: [NAMESPACE/]NAME, or '' for the host.
  std::string host_user = {};  // If `account` can be ''.
  std::string is_owner = {};   // CEL: `variables.release` is a release of `params`.
  bool has_overrides = false;  // A child may name another mode than its owner.
};

json::Array variables(const Owners& owners) {
  const std::string own_mode = "has(params.spec.mode) ? params.spec.mode : ''";
  return {
      named("release", annotation_in("oldObject", kInstanceRefAnnotation)),
      named("where", annotation_in("oldObject", kNamespaceAnnotation)),
      named("account", owners.account),
      named("applier",
            fmt::format("variables.account == '' ? {} : 'system:serviceaccount:' + "
                        "(variables.account.contains('/') ? variables.account.replace('/', ':') : "
                        "variables.where + ':' + variables.account)",
                        cel_text(owners.host_user))),
      // The object is a child of this owner, and its writer is not the user that applies the
      // release.
      named("concerned", "request.userInfo.username != variables.applier && " + owners.is_owner),
      named("override", owners.has_overrides ? overriding_mode_in("oldObject") : "''"),
      named("mode", fmt::format("variables.override != '' ? variables.override : ({})", own_mode)),
      // An object that is being deleted goes by further writes: the kubelet deletes a Pod a second
      // time, and controllers remove their finalizers. Nobody but the API server sets the time of
      // deletion, and what is stored has it only after a deletion that was accepted.
      named("fixed",
            "variables.concerned && variables.mode == 'static' && "
            "!has(oldObject.metadata.deletionTimestamp)"),
  };
}

// `namespace_`: CEL.
std::string release_is(std::string_view namespace_, const kube::Resource& kind) {
  return fmt::format("variables.release == {} + {} + params.metadata.name", namespace_,
                     cel_text(fmt::format("/{}:", kind.gvk().group_kind().to_string())));
}

ChildProtection protection(const Owners& owners) {
  const json::Object rule{{"apiGroups", json::Array{"*"}},
                          {"apiVersions", json::Array{"*"}},
                          {"resources", json::Array{"*"}},  // Without subresources.
                          {"operations", json::Array{"UPDATE", "DELETE"}},
                          {"scope", owners.scope}};
  const json::Object children{{"matchLabels", json::Object{{kManagedByLabel, kManagedBy}}}};
  const std::string updates = "request.operation == 'DELETE' || ";
  std::vector<std::string> kept;
  for (const std::string_view key :
       {kReleaseAnnotation, kNamespaceAnnotation, kInstanceRefAnnotation, kModeAnnotation}) {
    kept.push_back(same_annotation(key));
  }
  // Nor may anybody give the annotation to the release's manager, or take it away.
  if (owners.has_overrides) kept.push_back(overriding_mode_in("object") + " == variables.override");
  const json::Array validations{
      validation(fmt::format("{}!variables.concerned || ({})", updates, fmt::join(kept, " && ")),
                 "cannot modify yoke annotations"),
      // A user who applies with the release's own field manager would change applied fields without
      // taking them away.
      validation(
          fmt::format("{}!variables.fixed || ({} == {} && !(has(request.options.fieldManager) "
                      "&& request.options.fieldManager == {}))",
                      updates, applied_in("object"), applied_in("oldObject"),
                      cel_text(kFieldManager)),
          "cannot modify flight sub-resources"),
      validation("request.operation != 'DELETE' || !variables.fixed",
                 "cannot delete resources managed by Air-Traffic-Controller")};
  ChildProtection made;
  made.policy = json::Object{
      {"metadata", json::Object{{"name", owners.name}}},
      {"spec",
       json::Object{
           // Where owners cannot be read, garbage collection and the deletion of namespaces must
           // not stall, nor anything else that depends on children.
           {"failurePolicy", "Ignore"},
           {"paramKind", json::Object{{"apiVersion", kAirwayApiVersion}, {"kind", owners.kind}}},
           {"matchConstraints",
            json::Object{{"objectSelector", children}, {"resourceRules", json::Array{rule}}}},
           {"matchConditions",
            json::Array{named("not-by-the-cluster-itself",
                              "!request.userInfo.username.startsWith('system:serviceaccount:"
                              "kube-system:') && request.userInfo.username != "
                              "'system:kube-controller-manager'")}},
           {"variables", variables(owners)},
           {"validations", validations}}}};
  made.binding = json::Object{
      {"metadata", json::Object{{"name", owners.name}}},
      {"spec", json::Object{{"policyName", owners.name},
                            {"validationActions", json::Array{"Deny"}},
                            // Selects every owner; of Flights, those of the child's namespace.
                            {"paramRef", json::Object{{"selector", json::Object{}},
                                                      {"parameterNotFoundAction", "Allow"}}}}}};
  return made;
}

}  // namespace

ChildProtection protection_of_airways(std::string_view host_user, const Acting& acting_by_default) {
  const std::string otherwise =
      acting_by_default.namespace_.empty()
          ? acting_by_default.name
          : fmt::format("{}/{}", acting_by_default.namespace_, acting_by_default.name);
  return protection({.name = kAirwayChildren,
                     .kind = kAirwayKind,
                     .scope = "*",
                     .account = annotation_of_params(otherwise),
                     .host_user = std::string(host_user),
                     .is_owner = "variables.release.contains('/' + params.spec.template.names.kind "
                                 "+ '.' + params.spec.template.group + ':')",
                     .has_overrides = true});
}

ChildProtection protection_of_flights() {
  return protection({.name = kFlightChildren,
                     .kind = kFlightKind,
                     .scope = "Namespaced",
                     .account = annotation_of_params(kDefaultFlightAccount),
                     .is_owner = release_is("params.metadata.namespace", flight_resource())});
}

ChildProtection protection_of_cluster_flights(std::string_view host_user) {
  return protection({.name = kClusterFlightChildren,
                     .kind = kClusterFlightKind,
                     .scope = "*",
                     .account = annotation_of_params(""),
                     .host_user = std::string(host_user),
                     .is_owner = release_is("''", cluster_flight_resource())});
}

}  // namespace hangar::airways
