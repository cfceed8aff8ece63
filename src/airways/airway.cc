#include "airways/airway.h"

#include "airways/limits.h"
#include "airways/matcher.h"
#include "base/invalid.h"
#include "base/result.h"
#include "base/time.h"
#include "json/fields.h"
#include "json/value.h"
#include "kube/object.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::airways {

namespace {

using json::Fields;

constexpr std::array<std::pair<Mode, std::string_view>, 4> kModes = {{
    {Mode::Standard, "standard"},
    {Mode::Static, "static"},
    {Mode::Dynamic, "dynamic"},
    {Mode::Subscription, "subscription"},
}};

// 65536 pages of 64 KiB: all that a 32-bit guest can address.
constexpr std::int64_t kMemoryMibMax = 4096;

Result<Mode> parse_mode(const Fields& spec) {
  const std::string text = HANGAR_TRY(spec.text("mode"));
  if (text.empty()) return Mode::Standard;
  const std::optional<Mode> mode = mode_of(text);
  if (!mode) {
    return invalid(
        fmt::format("spec.mode: \"{}\" is none of standard, static, dynamic, subscription", text));
  }
  return *mode;
}

Result<std::vector<Matcher>> parse_matchers(const Fields& spec) {
  const std::vector<std::string> texts = HANGAR_TRY(spec.texts("resourceAccessMatchers"));
  std::vector<Matcher> matchers;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    Result<Matcher> matcher = Matcher::parse(texts[i]);
    if (!matcher) {
      return std::unexpected(
          std::move(matcher).error().in(fmt::format("spec.resourceAccessMatchers[{}]", i)));
    }
    matchers.push_back(*std::move(matcher));
  }
  return matchers;
}

Result<> parse_wasm_urls(const Fields& spec, Airway& airway) {
  const Fields urls = HANGAR_TRY(spec.required_object("wasmUrls"));
  airway.flight_url = HANGAR_TRY(urls.required_text("flight"));
  airway.flight_checksum = HANGAR_TRY(urls.text("flightChecksum"));
  airway.converter_url = HANGAR_TRY(urls.text("converter"));
  airway.converter_checksum = HANGAR_TRY(urls.text("converterChecksum"));
  return {};
}

Result<> parse_limits(const Fields& spec, Airway& airway) {
  const Duration interval = HANGAR_TRY(spec.duration("fixDriftInterval"));
  if (interval > Duration(0)) {
    airway.fix_drift_interval = std::max<Duration>(interval, limits::kFixDriftIntervalMin);
  }
  const Duration timeout = HANGAR_TRY(spec.duration("timeout"));
  if (timeout < Duration(0)) airway.timeout = std::nullopt;
  if (timeout > Duration(0)) airway.timeout = timeout;

  const std::int64_t history = HANGAR_TRY(spec.integer("historyCapSize"));
  if (history < 0) airway.history_max = std::nullopt;
  if (history > 0) {
    airway.history_max = static_cast<std::uint32_t>(
        std::min<std::int64_t>(history, std::numeric_limits<std::uint32_t>::max()));
  }

  const std::int64_t memory_mib = HANGAR_TRY(spec.integer("maxMemoryMib"));
  if (memory_mib < 0) return invalid("spec.maxMemoryMib: must not be negative");
  airway.memory_mib_max = static_cast<std::uint32_t>(std::min(memory_mib, kMemoryMibMax));
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

std::string_view name_of(Mode mode) {
  return std::ranges::find(kModes, mode, &std::pair<Mode, std::string_view>::first)->second;
}

std::optional<Mode> mode_of(std::string_view name) {
  const auto* const found =
      std::ranges::find(kModes, name, &std::pair<Mode, std::string_view>::second);
  if (found == kModes.end()) return std::nullopt;
  return found->first;
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

  HANGAR_TRY(parse_wasm_urls(spec, airway));
  airway.object_path = HANGAR_TRY(spec.texts("objectPath"));
  airway.mode = HANGAR_TRY(parse_mode(spec));
  airway.cluster_access = HANGAR_TRY(spec.flag("clusterAccess"));
  airway.resource_access_matchers = HANGAR_TRY(parse_matchers(spec));
  airway.insecure = HANGAR_TRY(spec.flag("insecure"));
  airway.skip_admission_webhook = HANGAR_TRY(spec.flag("skipAdmissionWebhook"));
  HANGAR_TRY(parse_limits(spec, airway));
  if (const json::Object* prune = HANGAR_TRY(spec.object("prune"))) {
    const Fields options(*prune, "spec.prune");
    airway.prune.crds = HANGAR_TRY(options.flag("crds"));
    airway.prune.namespaces = HANGAR_TRY(options.flag("namespaces"));
  }
  HANGAR_TRY(parse_template(spec, airway));
  return airway;
}

std::vector<std::string> unsupported_of(const Airway& airway, Means means) {
  std::vector<std::string> sentences;
  if (means.has_webhooks) return sentences;
  constexpr std::string_view kAreOff =
      "needs webhooks, which are off: --webhook-bind-address, or webhooks.enabled of the chart";
  if (airway.mode == Mode::Static) sentences.push_back(fmt::format("spec.mode static {}", kAreOff));
  if (!airway.converter_url.empty()) {
    sentences.push_back(fmt::format("spec.wasmUrls.converter {}", kAreOff));
  }
  return sentences;
}

std::vector<std::string> unsupported_of_instance(const json::Value& instance) {
  std::vector<std::string> sentences;
  for (const std::string_view key : {"overrides.yoke.cd/flight", "overrides.yoke.cd/mode"}) {
    if (!kube::annotation_of(instance, key).empty()) {
      sentences.push_back(fmt::format(
          "annotation {} is ignored: who may set it is checked by webhooks, which are off: "
          "--webhook-bind-address, or webhooks.enabled of the chart",
          key));
    }
  }
  return sentences;
}

Result<json::Value> flight_input(const Airway& airway, const json::Value& instance) {
  const json::Value* value = &instance;
  for (const std::string& key : airway.object_path) {
    if (value->is_null()) break;
    const json::Object* object = value->if_object();
    if (object == nullptr) {
      return invalid(
          fmt::format("failed to get object path from: \"{}\": what \"{}\" is looked "
                      "for in is no object",
                      fmt::join(airway.object_path, ","), key));
    }
    value = object->if_contains(key);
    if (value == nullptr) return json::Value(nullptr);
  }
  return *value;
}

}  // namespace hangar::airways
