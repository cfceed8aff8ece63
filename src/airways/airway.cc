#include "airways/airway.h"

#include "airways/terms.h"
#include "base/invalid.h"
#include "base/result.h"
#include "json/fields.h"
#include "json/value.h"
#include "kube/object.h"

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::airways {

namespace {

using json::Fields;

Result<> parse_wasm_urls(const Fields& spec, Airway& airway) {
  const Fields urls = HANGAR_TRY(spec.required_object("wasmUrls"));
  airway.terms.flight.reference = HANGAR_TRY(urls.required_text("flight"));
  airway.terms.flight.sha256 = HANGAR_TRY(urls.text("flightChecksum"));
  airway.converter_url = HANGAR_TRY(urls.text("converter"));
  airway.converter_checksum = HANGAR_TRY(urls.text("converterChecksum"));
  return {};
}

Result<std::string> storage_version(const json::Object& spec) {
  const json::Value* member = spec.if_contains("versions");
  const json::Array* versions = member == nullptr ? nullptr : member->if_array();
  if (versions == nullptr || versions->empty()) {
    return invalid("spec.template.versions: at least one version is required");
  }
  std::string storage;
  for (std::size_t i = 0; i < versions->size(); ++i) {
    const json::Value& version = (*versions)[i];
    const std::string path = fmt::format("spec.template.versions[{}]", i);
    if (!version.is_object()) return invalid(path + ": must be an object");
    const std::string_view name = json::string_at(version, {"name"});
    if (name.empty()) return invalid(path + ".name: is required");
    if (!json::bool_at(version, {"storage"})) continue;
    if (!storage.empty()) {
      return invalid(
          fmt::format("spec.template.versions: both {} and {} have storage: true; exactly one may",
                      storage, name));
    }
    storage = name;
  }
  if (storage.empty()) {
    return invalid("spec.template.versions: exactly one version must have storage: true");
  }
  return storage;
}

Result<> parse_template(const Fields& spec, Airway& airway) {
  const json::Object* object = HANGAR_TRY(spec.object("template"));
  if (object == nullptr) return invalid("spec.template: is required");
  airway.template_ = *object;

  const Fields crd(*object, "spec.template");
  airway.instances.group = HANGAR_TRY(crd.required_text("group"));
  const Fields names = HANGAR_TRY(crd.required_object("names"));
  airway.instances.kind = HANGAR_TRY(names.required_text("kind"));
  airway.instances.plural = HANGAR_TRY(names.required_text("plural"));
  const std::string scope = HANGAR_TRY(crd.required_text("scope"));
  if (scope != "Namespaced" && scope != "Cluster") {
    return invalid(
        fmt::format("spec.template.scope: \"{}\" is neither Namespaced nor Cluster", scope));
  }
  airway.instances.namespaced = scope == "Namespaced";
  airway.instances.version = HANGAR_TRY(storage_version(*object));

  const std::string name = airway.instances.plural + "." + airway.instances.group;
  if (airway.name != name) {
    return invalid(
        fmt::format("metadata.name: \"{}\" must be the template's <plural>.<group>: \"{}\"",
                    airway.name, name));
  }
  return {};
}

}  // namespace

kube::Resource airway_resource() {
  return {.group = "yoke.cd",
          .version = "v1alpha1",
          .plural = "airways",
          .kind = std::string(kAirwayKind),
          .namespaced = false};
}

Result<Airway> parse_airway(const json::Value& object) {
  const json::Object* root = object.if_object();
  if (root == nullptr) return invalid("an Airway must be an object");
  Airway airway;
  airway.name = json::string_at(object, {"metadata", "name"});
  airway.uid = json::string_at(object, {"metadata", "uid"});
  airway.generation = json::int_at(object, {"metadata", "generation"});
  const json::Object* spec_object = json::object_at(object, {"spec"});
  if (spec_object == nullptr) return invalid("spec: is required");
  const Fields spec(*spec_object, "spec");

  airway.terms = HANGAR_TRY(parse_terms(spec));
  airway.terms.object_path = HANGAR_TRY(spec.texts("objectPath"));
  HANGAR_TRY(parse_wasm_urls(spec, airway));
  HANGAR_TRY(parse_template(spec, airway));
  return airway;
}

std::vector<std::string> unsupported_of(const Airway& airway, Means means) {
  std::vector<std::string> sentences;
  if (means.has_webhooks) return sentences;
  if (std::optional<std::string> mode = unsupported_mode(airway.terms.mode, means.has_webhooks)) {
    sentences.push_back(*std::move(mode));
  }
  if (!airway.converter_url.empty()) {
    sentences.emplace_back(
        "spec.wasmUrls.converter needs webhooks, which are off: --webhook-bind-address, or "
        "webhooks.enabled of the chart");
  }
  return sentences;
}

std::vector<std::string> unsupported_of_instance(const json::Value& instance) {
  std::vector<std::string> sentences;
  for (const std::string_view key : {"overrides.yoke.cd/flight", "overrides.yoke.cd/mode"}) {
    if (!kube::annotation_of(instance, key).empty()) {
      sentences.push_back(fmt::format(
          "annotation {} is ignored: admission webhooks are off, and only they can check the user "
          "who sets it; turn them on with --webhook-bind-address, or webhooks.enabled of the chart",
          key));
    }
  }
  return sentences;
}

}  // namespace hangar::airways
