#include "operators/operator.h"

#include "abi/kube_runtime/limits.h"
#include "base/invalid.h"
#include "base/quantity.h"
#include "json/fields.h"
#include "json/yaml.h"
#include "modules/reference.h"
#include "operators/limits.h"
#include "wasm/limits.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <optional>
#include <ranges>
#include <set>
#include <utility>

namespace hangar::operators {

namespace {

using json::Fields;

// As for exec's environment: a name without '=', and no null byte anywhere (the guest reads
// C strings).
Result<> check_environment_name(const std::string& name, const std::string& where) {
  if (name.empty() || name.find_first_of(std::string_view("=\0", 2)) != std::string::npos) {
    return invalid(where + ": must be the name of a variable");
  }
  return {};
}

Result<> check_text(const std::string& text, const std::string& where) {
  if (text.find('\0') != std::string::npos) return invalid(where + ": must not have null bytes");
  return {};
}

// "metadata.labels['a.b/c']" names the key a.b/c below metadata.labels.
std::optional<std::string_view> subscript(std::string_view path, std::string_view map) {
  constexpr std::string_view kOpen = "['";
  constexpr std::string_view kClose = "']";
  if (!path.starts_with(map) || !path.ends_with(kClose)) return std::nullopt;
  path.remove_prefix(map.size());
  if (!path.starts_with(kOpen) || path.size() < kOpen.size() + kClose.size()) return std::nullopt;
  return path.substr(kOpen.size(), path.size() - kOpen.size() - kClose.size());
}

// The fieldRef of a pod, read from the Operator.
Result<std::string> read_field(const Fields& reference, const json::Value& manifest) {
  const std::string path = HANGAR_TRY(reference.required_text("fieldPath"));
  for (const std::string_view name : {"name", "namespace", "uid"}) {
    if (path == fmt::format("metadata.{}", name)) {
      return std::string(json::string_at(manifest, {"metadata", name}));
    }
  }
  for (const std::string_view map : {"labels", "annotations"}) {
    const auto key = subscript(path, fmt::format("metadata.{}", map));
    if (key) return std::string(json::string_at(manifest, {"metadata", map, *key}));
  }
  if (path == "spec.serviceAccountName") {
    const std::string_view name = json::string_at(manifest, {"spec", "serviceAccountName"});
    return std::string(name.empty() ? "default" : name);
  }
  return reference.wrong("fieldPath",
                         "metadata.name, metadata.namespace, metadata.uid, metadata.labels['KEY'], "
                         "metadata.annotations['KEY'] or spec.serviceAccountName: a guest has no "
                         "pod, node or address of its own");
}

Result<EnvironmentEntry> parse_environment_entry(const Fields& item, const json::Value& manifest) {
  EnvironmentEntry entry{.name = HANGAR_TRY(item.required_text("name"))};
  HANGAR_TRY(check_environment_name(entry.name, item.name("name")));
  entry.value = HANGAR_TRY(item.text("value"));
  HANGAR_TRY(check_text(entry.value, item.name("value")));
  if (!item.has("valueFrom")) return entry;

  if (!entry.value.empty()) {
    return invalid(item.name("value") + ": must not be given together with valueFrom");
  }
  const Fields from = HANGAR_TRY(item.required_object("valueFrom"));
  const bool is_secret = from.has("secretKeyRef");
  const bool is_field = from.has("fieldRef");
  if (int{is_secret} + int{is_field} + int{from.has("configMapKeyRef")} != 1) {
    return invalid(item.name("valueFrom") +
                   ": must have one of configMapKeyRef, secretKeyRef, fieldRef");
  }
  if (is_field) {
    const Fields reference = HANGAR_TRY(from.required_object("fieldRef"));
    entry.value = HANGAR_TRY(read_field(reference, manifest));
    HANGAR_TRY(check_text(entry.value, item.name("valueFrom")));
    return entry;
  }
  const Fields reference =
      HANGAR_TRY(from.required_object(is_secret ? "secretKeyRef" : "configMapKeyRef"));
  entry.source = is_secret ? EnvironmentEntry::Source::Secret : EnvironmentEntry::Source::ConfigMap;
  entry.object = HANGAR_TRY(reference.required_text("name"));
  entry.key = HANGAR_TRY(reference.required_text("key"));
  entry.is_optional = HANGAR_TRY(reference.flag("optional"));
  return entry;
}

Result<FileEntry> parse_file_entry(const Fields& item) {
  FileEntry entry{.path = HANGAR_TRY(item.required_text("path"))};
  const bool is_clean = entry.path.starts_with('/') && !entry.path.ends_with('/') &&
                        entry.path.find("//") == std::string::npos &&
                        entry.path.find("/../") == std::string::npos &&
                        !entry.path.ends_with("/..") && entry.path.find('\0') == std::string::npos;
  if (!is_clean) return item.wrong("path", "an absolute path without .. or a slash at its end");
  entry.is_secret = item.has("secret");
  if (entry.is_secret == item.has("configMap")) {
    return invalid(item.name("path") + ": needs one of configMap, secret beside it");
  }
  const Fields source = HANGAR_TRY(item.required_object(entry.is_secret ? "secret" : "configMap"));
  entry.object = HANGAR_TRY(source.required_text("name"));
  entry.is_optional = HANGAR_TRY(source.flag("optional"));
  return entry;
}

constexpr std::array kWebhookKinds = {
    std::pair{WebhookKind::Validating, std::string_view("ValidatingWebhookConfiguration")},
    std::pair{WebhookKind::Mutating, std::string_view("MutatingWebhookConfiguration")},
    std::pair{WebhookKind::Conversion, std::string_view("CustomResourceDefinition")},
};

Result<WebhookSource> parse_webhook_source(const Fields& item) {
  const std::string kind = HANGAR_TRY(item.required_text("kind"));
  const auto* const found =
      std::ranges::find(kWebhookKinds, kind, &std::pair<WebhookKind, std::string_view>::second);
  if (found == kWebhookKinds.end()) {
    return item.wrong(
        "kind", fmt::format("one of {}", fmt::join(kWebhookKinds | std::views::values, ", ")));
  }
  WebhookSource source{.kind = found->first, .name = HANGAR_TRY(item.required_text("name"))};
  // It becomes part of a URL.
  const bool is_name = std::ranges::all_of(source.name, [](unsigned char letter) {
    return std::isalnum(letter) != 0 || letter == '.' || letter == '-' || letter == ':';
  });
  if (!is_name) return item.wrong("name", "the name of an object");
  return source;
}

Result<> parse_webhooks(const Fields& spec, std::vector<WebhookSource>& webhooks) {
  for (const Fields& item : HANGAR_TRY(spec.objects("webhooks"))) {
    WebhookSource source = HANGAR_TRY(parse_webhook_source(item));
    if (std::ranges::find(webhooks, source) != webhooks.end()) {
      return item.wrong("name", "an object that is not in the list yet");
    }
    webhooks.push_back(std::move(source));
  }
  if (webhooks.size() > limits::kWebhookConfigurationsMax) {
    return invalid(fmt::format("{}: has {} entries, the most is {}", spec.name("webhooks"),
                               webhooks.size(), limits::kWebhookConfigurationsMax));
  }
  return {};
}

Result<> parse_module(const Fields& spec, Operator& result) {
  const Fields module = HANGAR_TRY(spec.required_object("module"));
  if (module.has("url") == module.has("configMap")) {
    return invalid(module.name("url") + ": exactly one of url and configMap is needed");
  }
  result.sha256 = HANGAR_TRY(module.text("sha256"));
  result.insecure = HANGAR_TRY(module.flag("insecure"));
  if (module.has("url")) {
    result.module = HANGAR_TRY(module.required_text("url"));
    // Checks the parsed reference, not its spelling. The URL of an Operator may not name a
    // ConfigMap, since that would name a namespace, too.
    const Result<modules::Reference> reference = modules::Reference::parse(result.module);
    if (!reference) return std::unexpected(Error(reference.error()).in(module.name("url")));
    if (reference->is_config_map()) {
      return module.wrong("url", "http(s), oci or file; for a ConfigMap use module.configMap");
    }
    return {};
  }
  const Fields config_map = HANGAR_TRY(module.required_object("configMap"));
  const std::string name = HANGAR_TRY(config_map.required_text("name"));
  const std::string key = HANGAR_TRY(config_map.text("key"));
  if (name.find('/') != std::string::npos) return config_map.wrong("name", "a ConfigMap's name");
  if (key.find('/') != std::string::npos) return config_map.wrong("key", "a ConfigMap's key");
  result.module = fmt::format("configmap://{}/{}{}{}", result.key.namespace_, name,
                              key.empty() ? "" : "/", key);
  return {};
}

Result<> parse_limits(const Fields& spec, OperatorLimits& limits) {
  if (!spec.has("limits")) return {};
  const Fields fields = HANGAR_TRY(spec.required_object("limits"));
  const auto bytes = [&fields](std::string_view key, std::uint64_t otherwise,
                               std::uint64_t max) -> Result<std::uint64_t> {
    const std::string text = HANGAR_TRY(fields.text(key));
    if (text.empty()) return otherwise;
    Result<std::uint64_t> parsed = parse_bytes(text);
    if (!parsed) return std::unexpected(std::move(parsed).error().in(fields.name(key)));
    if (*parsed == 0 || *parsed > max) {
      return fields.wrong(key, fmt::format("more than 0 and at most {} bytes", max));
    }
    return *parsed;
  };
  limits.memory_bytes =
      HANGAR_TRY(bytes("memory", limits.memory_bytes, hangar::limits::kGuestMemoryBytesMax));
  limits.log_bytes =
      HANGAR_TRY(bytes("logBytes", limits.log_bytes, hangar::limits::kOperatorOutputBytesMax));
  const Duration cpu_time = HANGAR_TRY(fields.duration("cpuTimePerWake"));
  if (cpu_time < Duration(0) || cpu_time > hangar::limits::kGuestCallMax) {
    return fields.wrong("cpuTimePerWake",
                        "at most " + to_go_duration(hangar::limits::kGuestCallMax));
  }
  if (cpu_time > Duration(0)) limits.cpu_time_per_wake = cpu_time;
  const std::int64_t rate = HANGAR_TRY(fields.integer("requestsPerSecond"));
  if (rate < 0) return fields.wrong("requestsPerSecond", "more than 0");
  if (rate > 0) limits.requests_per_second = static_cast<double>(rate);
  return {};
}

Result<> parse_sleep(const Fields& spec, SleepPolicy& sleep) {
  if (!spec.has("sleep")) return {};
  const Fields fields = HANGAR_TRY(spec.required_object("sleep"));
  const std::string policy = HANGAR_TRY(fields.text("policy"));
  if (policy == "Never") {
    sleep.kind = SleepPolicy::Kind::Never;
  } else if (policy == "Predictive") {
    sleep.kind = SleepPolicy::Kind::Predictive;
  } else if (!policy.empty() && policy != "Idle") {
    return fields.wrong("policy", "Idle, Predictive or Never");
  }
  if (fields.has("wakeLatency")) {
    sleep.wake_latency = HANGAR_TRY(fields.duration("wakeLatency"));
    if (sleep.wake_latency < Duration(0)) return fields.wrong("wakeLatency", "0s or more");
  }
  if (!fields.has("after")) return {};
  sleep.after = HANGAR_TRY(fields.duration("after"));
  if (sleep.after < Duration(0)) return fields.wrong("after", "0s or more");
  return {};
}

Result<> parse_isolation(const Fields& spec, Isolation& isolation) {
  const std::string said = HANGAR_TRY(spec.text("isolation"));
  if (said == "Operator") {
    isolation = Isolation::Operator;
  } else if (!said.empty() && said != "Namespace") {
    return spec.wrong("isolation", "Namespace or Operator");
  }
  return {};
}

Result<> parse_recording(const Fields& spec, Recording& record) {
  const std::string said = HANGAR_TRY(spec.text("record"));
  if (said == "Bodies") {
    record = Recording::Bodies;
  } else if (!said.empty() && said != "Metadata") {
    return spec.wrong("record", "Metadata or Bodies");
  }
  return {};
}

// `manifest`: the object that fieldRef reads from.
Result<std::vector<EnvironmentEntry>> parse_environment(const Fields& spec,
                                                        const json::Value& manifest) {
  std::vector<EnvironmentEntry> environment;
  for (const Fields& item : HANGAR_TRY(spec.objects("env"))) {
    environment.push_back(HANGAR_TRY(parse_environment_entry(item, manifest)));
  }
  return environment;
}

Result<std::vector<std::string>> parse_args(const Fields& spec) {
  std::vector<std::string> args = HANGAR_TRY(spec.texts("args"));
  for (const std::string& arg : args)
    HANGAR_TRY(check_text(arg, spec.name("args")));
  return args;
}

// Other members would be ignored: they are slips, or meant for an Operator.
Result<> check_wasm_document(const json::Object& document) {
  constexpr std::array<std::string_view, 4> kKnown = {"name", "wasm", "env", "args"};
  for (const auto& member : document) {
    if (std::ranges::find(kKnown, std::string_view(member.key())) == kKnown.end()) {
      return invalid(fmt::format("{}: is not known here; a document has {}",
                                 std::string_view(member.key()), fmt::join(kKnown, ", ")));
    }
  }
  const Fields fields(document, "");
  for (const Fields& item : HANGAR_TRY(fields.objects("env"))) {
    if (!item.has("valueFrom")) continue;
    return invalid(fmt::format("{}: {} cannot come from a cluster object here; give its value",
                               item.name("valueFrom"), HANGAR_TRY(item.required_text("name"))));
  }
  return {};
}

Result<Operator> parse_wasm_document(const json::Value& document, std::string_view directory) {
  if (!document.is_object()) return invalid("must be an object with name and wasm");
  HANGAR_TRY(check_wasm_document(document.get_object()));
  const Fields fields(document.get_object(), "");
  Operator result;
  result.key.name = HANGAR_TRY(fields.required_text("name"));
  // The name becomes part of file names and is shown to people.
  const bool is_name = std::ranges::all_of(
      result.key.name, [](char letter) { return letter > ' ' && letter != '/' && letter != 0x7f; });
  if (!is_name) return fields.wrong("name", "a name without slashes and spaces");
  const std::string path = HANGAR_TRY(fields.required_text("wasm"));
  const bool is_absolute = path.starts_with('/');
  result.module = is_absolute ? path : fmt::format("{}/{}", directory, path);
  result.args = HANGAR_TRY(parse_args(fields));
  result.environment = HANGAR_TRY(parse_environment(fields, document));
  result.service_account.clear();
  result.limits.memory_bytes = hangar::limits::kGuestMemoryBytesMax;
  result.limits.requests_per_second = 0;
  return result;
}

}  // namespace

std::string_view name_of(WebhookKind kind) {
  return std::ranges::find(kWebhookKinds, kind, &std::pair<WebhookKind, std::string_view>::first)
      ->second;
}

kube::Resource operator_resource() {
  return {.group = "hangar.dev",
          .version = "v1alpha1",
          .plural = "operators",
          .kind = "Operator",
          .namespaced = true};
}

Result<Operator> parse_operator(const json::Value& manifest) {
  Operator result{.key = kube::key_of(manifest),
                  .uid = std::string(json::string_at(manifest, {"metadata", "uid"})),
                  .generation = json::int_at(manifest, {"metadata", "generation"})};
  const json::Object* const object = json::object_at(manifest, {"spec"});
  if (object == nullptr) return invalid("spec: is required");
  const Fields spec(*object, "spec");
  HANGAR_TRY(parse_module(spec, result));
  result.args = HANGAR_TRY(parse_args(spec));
  result.environment = HANGAR_TRY(parse_environment(spec, manifest));
  for (const Fields& item : HANGAR_TRY(spec.objects("files"))) {
    result.files.push_back(HANGAR_TRY(parse_file_entry(item)));
  }
  if (result.environment.size() + result.files.size() > hangar::limits::kOperatorInputsMax) {
    return invalid(fmt::format("spec.env and spec.files: may have {} entries together",
                               hangar::limits::kOperatorInputsMax));
  }
  if (spec.has("serviceAccountName")) {
    result.service_account = HANGAR_TRY(spec.required_text("serviceAccountName"));
    // It becomes part of a user name that RBAC decides on, so it has to be a plain name.
    if (result.service_account.find_first_of(":/ \t\n") != std::string::npos) {
      return spec.wrong("serviceAccountName", "the name of a ServiceAccount");
    }
  }
  HANGAR_TRY(parse_limits(spec, result.limits));
  HANGAR_TRY(parse_sleep(spec, result.sleep));
  HANGAR_TRY(parse_webhooks(spec, result.webhooks));
  HANGAR_TRY(parse_isolation(spec, result.isolation));
  HANGAR_TRY(parse_recording(spec, result.record));
  return result;
}

Result<std::vector<Operator>> parse_wasm_config(std::string_view yaml, std::string_view directory,
                                                SleepPolicy sleep) {
  const std::vector<json::Value> documents = HANGAR_TRY(json::parse_yaml_stream(yaml));
  std::vector<Operator> operators;
  std::set<std::string> names;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    Result<Operator> parsed = parse_wasm_document(documents[i], directory);
    if (!parsed) {
      return std::unexpected(std::move(parsed).error().in(fmt::format("document {}", i + 1)));
    }
    if (!names.insert(parsed->key.name).second) {
      return invalid(
          fmt::format("document {}: name: there is another \"{}\"", i + 1, parsed->key.name));
    }
    parsed->sleep = sleep;
    operators.push_back(*std::move(parsed));
  }
  if (operators.empty()) return invalid("has no document with a name and a wasm");
  return operators;
}

}  // namespace hangar::operators
