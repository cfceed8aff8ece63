#include "airways/crd_template.h"

#include "admission/webhooks.h"
#include "airways/airway.h"
#include "airways/ownership.h"
#include "base/invalid.h"
#include "base/result.h"
#include "json/value.h"
#include "kube/object.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::airways {

namespace {

// The schema of []metav1.Condition, as the Airway's own CRD has it.
json::Object conditions_schema() {
  const json::Object text = {{"type", "string"}};
  return {
      {"type", "array"},
      {"items",
       json::Object{
           {"type", "object"},
           {"required", json::Array{"type", "status", "lastTransitionTime", "reason", "message"}},
           {"properties", json::Object{{"lastTransitionTime", text},
                                       {"message", text},
                                       {"observedGeneration", json::Object{{"type", "integer"}}},
                                       {"reason", text},
                                       {"status", text},
                                       {"type", text}}}}},
      {"x-kubernetes-list-type", "map"},
      {"x-kubernetes-list-map-keys", json::Array{"type"}},
  };
}

// The member at `key`; made an object if it is missing or null.
Result<json::Object*> object_member(json::Object& parent, std::string_view key,
                                    std::string_view path) {
  json::Value& member = parent[key];
  if (member.is_null()) member.emplace_object();
  if (!member.is_object()) return invalid(fmt::format("{}.{}: must be an object", path, key));
  return &member.get_object();
}

std::string_view text_member(const json::Object& object, std::string_view key) {
  const json::Value* member = object.if_contains(key);
  return member == nullptr || !member->is_string() ? std::string_view()
                                                   : std::string_view(member->get_string());
}

// Whether values that satisfy `have` have the structure of `want` (conditions_schema(), in which
// every object has required properties). As loose as yoke's check, except that `have` may have
// more.
Result<> check_satisfies(const json::Value& have, const json::Value& want, std::string_view path) {
  const std::string_view type = json::string_at(want, {"type"});
  if (const std::string_view found = json::string_at(have, {"type"}); found != type) {
    return invalid(fmt::format("{}: expected type \"{}\" but got \"{}\"", path, type, found));
  }
  if (type == "array") {
    const json::Value* items = json::find(have, {"items"});
    if (items == nullptr) return invalid(fmt::format("{}: items is missing", path));
    return check_satisfies(*items, *json::find(want, {"items"}), fmt::format("{}.items", path));
  }
  if (type != "object") return {};

  const json::Array* have_required = json::array_at(have, {"required"});
  for (const json::Value& key : *json::array_at(want, {"required"})) {
    if (have_required == nullptr ||
        std::ranges::find(*have_required, key) == have_required->end()) {
      return invalid(fmt::format("{}: \"{}\" is required but was not", path,
                                 std::string_view(key.get_string())));
    }
  }
  const json::Object* have_properties = json::object_at(have, {"properties"});
  for (const auto& [key, schema] : *json::object_at(want, {"properties"})) {
    const json::Value* found =
        have_properties == nullptr ? nullptr : have_properties->if_contains(key);
    if (found == nullptr) {
      return invalid(fmt::format("{}: property \"{}\" is missing", path, std::string_view(key)));
    }
    HANGAR_TRY(check_satisfies(*found, schema, fmt::format("{}.{}", path, std::string_view(key))));
  }
  return {};
}

Result<> prepare_status(json::Object& schema, const std::string& path) {
  json::Object& properties = *HANGAR_TRY(object_member(schema, "properties", path));
  const bool is_new = !properties.contains("status");
  json::Object& status = *HANGAR_TRY(object_member(properties, "status", path + ".properties"));
  const std::string status_path = path + ".properties.status";
  if (is_new) {
    status["type"] = "object";
    // A schema that preserves unknown fields does so in the status, too.
    constexpr std::string_view kKeepUnknown = "x-kubernetes-preserve-unknown-fields";
    if (const json::Value* keeps = schema.if_contains(kKeepUnknown)) status[kKeepUnknown] = *keeps;
  }
  if (const std::string_view type = text_member(status, "type"); type != "object") {
    return invalid(fmt::format("{}: invalid airway: status must be an object but got type: \"{}\"",
                               status_path, type));
  }
  json::Object& members = *HANGAR_TRY(object_member(status, "properties", status_path));
  if (json::Value* conditions = members.if_contains("conditions")) {
    Result<> satisfied = check_satisfies(*conditions, conditions_schema(), "conditions");
    if (!satisfied) {
      return invalid(fmt::format(
          "{}: invalid airway: invalid status: conditions does not have expected schema: {}",
          status_path, satisfied.error().message()));
    }
  } else {
    members["conditions"] = conditions_schema();
  }

  // The API server drops the status at creation: if it were required, no instance could be created.
  if (json::Value* member = schema.if_contains("required"); member != nullptr) {
    if (json::Array* required = member->if_array()) {
      const auto [first, last] = std::ranges::remove(*required, json::Value("status"));
      required->erase(first, last);
      if (required->empty()) schema.erase("required");
    }
  }
  return {};
}

Result<> prepare_version(json::Object& version, const std::string& path) {
  json::Object& subresources = *HANGAR_TRY(object_member(version, "subresources", path));
  subresources["status"] = json::Object();
  json::Object& validation = *HANGAR_TRY(object_member(version, "schema", path));
  const bool has_schema =
      validation.contains("openAPIV3Schema") && !validation["openAPIV3Schema"].is_null();
  json::Object& schema =
      *HANGAR_TRY(object_member(validation, "openAPIV3Schema", path + ".schema"));
  if (!has_schema) schema["type"] = "object";
  return prepare_status(schema, path + ".schema.openAPIV3Schema");
}

}  // namespace

kube::Resource crd_resource() {
  return {.group = "apiextensions.k8s.io",
          .version = "v1",
          .plural = "customresourcedefinitions",
          .kind = "CustomResourceDefinition"};
}

Result<json::Value> crd_of(const Airway& airway, std::optional<admission::Address> converter) {
  json::Value spec = airway.template_;
  json::Array& versions = spec.get_object()["versions"].get_array();
  for (std::size_t i = 0; i < versions.size(); ++i) {
    HANGAR_TRY(
        prepare_version(versions[i].get_object(), fmt::format("spec.template.versions[{}]", i)));
  }
  json::Value& conversion = spec.get_object()["conversion"];
  json::Object metadata{
      {"name", airway.name},
      {"ownerReferences", json::Array{json::Object{{"apiVersion", kAirwayApiVersion},
                                                   {"kind", kAirwayKind},
                                                   {"name", airway.name},
                                                   {"uid", airway.uid},
                                                   {"blockOwnerDeletion", true}}}}};
  if (converter) {
    conversion =
        json::Object{{"strategy", "Webhook"},
                     {"webhook", json::Object{{"clientConfig", std::move(converter->client_config)},
                                              {"conversionReviewVersions", json::Array{"v1"}}}}};
    if (!converter->annotations.empty()) {
      metadata["annotations"] = std::move(converter->annotations);
    }
  } else if (conversion.is_null()) {
    conversion = json::Object{{"strategy", "None"}};
  }
  return json::Value(json::Object{
      {"apiVersion", "apiextensions.k8s.io/v1"},
      {"kind", "CustomResourceDefinition"},
      {"metadata", std::move(metadata)},
      {"spec", std::move(spec)},
  });
}

std::optional<kube::Resource> stored_kind(const json::Value& crd) {
  const json::Array* const versions = json::array_at(crd, {"spec", "versions"});
  if (versions == nullptr) return std::nullopt;
  for (const json::Value& version : *versions) {
    if (!json::bool_at(version, {"storage"}) || !json::bool_at(version, {"served"})) continue;
    return kube::Resource{.group = std::string(json::string_at(crd, {"spec", "group"})),
                          .version = std::string(json::string_at(version, {"name"})),
                          .plural = std::string(json::string_at(crd, {"spec", "names", "plural"})),
                          .kind = std::string(json::string_at(crd, {"spec", "names", "kind"})),
                          .namespaced = json::string_at(crd, {"spec", "scope"}) == "Namespaced"};
  }
  return std::nullopt;
}

Result<> may_take_over_crd(const json::Value& live, const Airway& airway) {
  if (const std::string owner = owner_of(live); !owner.empty()) {
    return invalid(
        fmt::format("expected release \"\" but resource is already owned by \"{}\"", owner));
  }
  for (const kube::OwnerReference& owner : kube::owners_of(live)) {
    if (owner.uid == airway.uid) return {};
    if (owner.api_version != kAirwayApiVersion || owner.kind != kAirwayKind) continue;
    if (owner.name == airway.name) {
      return fail(ErrorKind::Conflict,
                  fmt::format("custom resource definition {} still belongs to an earlier airway of "
                              "this name and is being removed",
                              airway.name));
    }
    return invalid(fmt::format("custom resource definition {} already belongs to airway {}",
                               airway.name, owner.name));
  }
  return {};
}

}  // namespace hangar::airways
