#include "airways/child_protection.h"

#include "airways/acting.h"
#include "airways/airway.h"
#include "airways/ownership.h"
#include "json/value.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

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

std::string same_annotation(std::string_view key) {
  return fmt::format("{} == {}", annotation_in("object", key), annotation_in("oldObject", key));
}

json::Array variables(std::string_view host_user, const Acting& acting) {
  const std::string otherwise = acting.namespace_.empty()
                                    ? acting.name
                                    : fmt::format("{}/{}", acting.namespace_, acting.name);
  return {
      named("release", annotation_in("oldObject", kInstanceRefAnnotation)),
      named("where", annotation_in("oldObject", kNamespaceAnnotation)),
      named("account", fmt::format("(has(params.metadata.annotations) && {0} in "
                                   "params.metadata.annotations ? "
                                   "params.metadata.annotations[{0}] : {1})",
                                   cel_text(kServiceAccountAnnotation), cel_text(otherwise))),
      named("applier",
            fmt::format("variables.account == '' ? {} : 'system:serviceaccount:' + "
                        "(variables.account.contains('/') ? variables.account.replace('/', ':') : "
                        "variables.where + ':' + variables.account)",
                        cel_text(host_user))),
      // The object is a child of this Airway, and its writer is not the user that applies the
      // release.
      named("concerned",
            "request.userInfo.username != variables.applier && variables.release.contains('/' + "
            "params.spec.template.names.kind + '.' + params.spec.template.group + ':')"),
      named("fixed",
            "variables.concerned && has(params.spec.mode) && params.spec.mode == 'static'"),
  };
}

}  // namespace

ChildProtection child_protection(std::string_view host_user, const Acting& acting_by_default) {
  const json::Object rule{{"apiGroups", json::Array{"*"}},
                          {"apiVersions", json::Array{"*"}},
                          {"resources", json::Array{"*"}},  // Without subresources.
                          {"operations", json::Array{"UPDATE", "DELETE"}},
                          {"scope", "*"}};
  const json::Object children{{"matchLabels", json::Object{{kManagedByLabel, kManagedBy}}}};
  const std::string updates = "request.operation == 'DELETE' || ";
  const json::Array validations{
      validation(
          fmt::format("{}!variables.concerned || ({} && {} && {})", updates,
                      same_annotation(kReleaseAnnotation), same_annotation(kNamespaceAnnotation),
                      same_annotation(kInstanceRefAnnotation)),
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
  ChildProtection protection;
  protection.policy = json::Object{
      {"metadata", json::Object{{"name", kChildProtection}}},
      {"spec",
       json::Object{
           // Where Airways cannot be read, garbage collection and the deletion of namespaces must
           // not stall, nor anything else that depends on children.
           {"failurePolicy", "Ignore"},
           {"paramKind", json::Object{{"apiVersion", kAirwayApiVersion}, {"kind", kAirwayKind}}},
           {"matchConstraints",
            json::Object{{"objectSelector", children}, {"resourceRules", json::Array{rule}}}},
           {"matchConditions",
            json::Array{named("not-by-the-cluster-itself",
                              "!request.userInfo.username.startsWith('system:serviceaccount:"
                              "kube-system:') && request.userInfo.username != "
                              "'system:kube-controller-manager'")}},
           {"variables", variables(host_user, acting_by_default)},
           {"validations", validations}}}};
  protection.binding = json::Object{
      {"metadata", json::Object{{"name", kChildProtection}}},
      {"spec", json::Object{{"policyName", kChildProtection},
                            {"validationActions", json::Array{"Deny"}},
                            // Selects every Airway.
                            {"paramRef", json::Object{{"selector", json::Object{}},
                                                      {"parameterNotFoundAction", "Allow"}}}}}};
  return protection;
}

}  // namespace hangar::airways
