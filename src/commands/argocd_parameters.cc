#include "commands/argocd_parameters.h"

#include "airways/limits.h"
#include "airways/ownership.h"
#include "airways/resource_ref.h"
#include "base/go_bool.h"
#include "base/invalid.h"
#include "base/number.h"
#include "base/result.h"
#include "base/time.h"
#include "commands/argocd_input.h"
#include "json/value.h"
#include "json/yaml.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::commands {

namespace {

constexpr std::string_view kSyncWaveAnnotation = "argocd.argoproj.io/sync-wave";
// Each is a request to the API server.
constexpr std::size_t kArgoRefsMax = 32;
constexpr std::size_t kArgoInputFilesMax = 64;

// The list of parameters. Each has a name and one of `string`, `array` and `map`.
class ArgoList {
 public:
  static Result<ArgoList> parse(std::string_view text) {
    ArgoList list;
    list.document_ = HANGAR_TRY(json::parse_yaml(text));
    const json::Array* const entries = list.document_.if_array();
    if (entries == nullptr) return invalid("the parameters are not a list");
    for (const json::Value& entry : *entries)
      HANGAR_TRY(check(entry));
    return list;
  }

  [[nodiscard]] bool has(std::string_view name) const { return find(name) != nullptr; }
  [[nodiscard]] std::string text(std::string_view name) const {
    const json::Value* const entry = find(name);
    return entry == nullptr ? std::string() : std::string(json::string_at(*entry, {"string"}));
  }
  [[nodiscard]] std::vector<std::string> list(std::string_view name) const {
    std::vector<std::string> texts;
    const json::Value* const entry = find(name);
    const json::Array* const items = entry == nullptr ? nullptr : json::array_at(*entry, {"array"});
    if (items == nullptr) return texts;
    for (const json::Value& item : *items)
      texts.emplace_back(item.get_string());
    return texts;
  }
  // Null if there is none.
  [[nodiscard]] const json::Object* map(std::string_view name) const {
    const json::Value* const entry = find(name);
    return entry == nullptr ? nullptr : json::object_at(*entry, {"map"});
  }

 private:
  static Result<> check(const json::Value& entry) {
    if (!entry.is_object()) return invalid("a parameter is not an object");
    const std::string_view name = json::string_at(entry, {"name"});
    const auto is_wrong = [&entry](std::string_view member, auto is_right) {
      const json::Value* const value = json::find(entry, {member});
      return value != nullptr && !value->is_null() && !is_right(*value);
    };
    const auto is_text = [](const json::Value& value) { return value.is_string(); };
    const auto is_texts = [&is_text](const json::Value& value) {
      return value.is_array() && std::ranges::all_of(value.get_array(), is_text);
    };
    const auto is_map = [](const json::Value& value) { return value.is_object(); };
    if (is_wrong("name", is_text)) return invalid("the name of a parameter is not a string");
    if (is_wrong("string", is_text)) {
      return invalid(fmt::format("parameter {}: string is not a string", name));
    }
    if (is_wrong("array", is_texts)) {
      return invalid(fmt::format("parameter {}: array is not a list of strings", name));
    }
    if (is_wrong("map", is_map))
      return invalid(fmt::format("parameter {}: map is not a map", name));
    return {};
  }
  [[nodiscard]] const json::Value* find(std::string_view name) const {
    for (const json::Value& entry : document_.get_array()) {
      if (json::string_at(entry, {"name"}) == name) return &entry;
    }
    return nullptr;
  }

  json::Value document_;
};

// A value of the map `input` is a document itself: Argo CD has strings only.
Result<json::Value> input_value(std::string_view key, const json::Value& value) {
  if (!value.is_string()) {
    return invalid(fmt::format("could not parse map input: the value of {} is not a string", key));
  }
  Result<std::vector<json::Value>> documents = json::parse_yaml_stream(value.get_string());
  if (!documents) {
    return std::unexpected(std::move(documents).error().in(
        fmt::format("could not parse the input map entry {}", key)));
  }
  if (documents->size() > 1) {
    return invalid(fmt::format("the input map entry {} has several documents", key));
  }
  return documents->empty() ? json::Value() : std::move(documents->front());
}

Result<json::Value> input_file(const std::string& path, const ReadArgoFile& read_file) {
  Result<std::string> text = read_file(path);
  if (!text) {
    return std::unexpected(
        std::move(text).error().in(fmt::format("could not read file '{}'", path)));
  }
  const std::string doing = fmt::format("could not parse YAML or JSON file '{}'", path);
  Result<std::vector<json::Value>> documents = json::parse_yaml_stream(*text);
  if (!documents) return std::unexpected(std::move(documents).error().in(doing));
  if (documents->empty() || !documents->front().is_object()) {
    return invalid(doing + ": it is not an object");
  }
  return std::move(documents->front());
}

Result<std::string> parse_input(const ArgoList& list, const ReadArgoFile& read_file) {
  if (std::string text = list.text("input"); !text.empty()) return text;
  const std::vector<std::string> files = list.list("inputFiles");
  if (files.size() > kArgoInputFilesMax) {
    return invalid(fmt::format("parameter inputFiles has more than {} files", kArgoInputFilesMax));
  }
  json::Value input = json::Object();
  for (const std::string& path : files)
    merge_input(input, HANGAR_TRY(input_file(path, read_file)));
  const json::Object* const values = list.map("input");
  const bool has_values = values != nullptr && !values->empty();
  if (has_values) {
    for (const auto& member : *values) {
      const std::string key(member.key());
      Result<> set = set_input(input, key, HANGAR_TRY(input_value(key, member.value())));
      if (!set) {
        return std::unexpected(
            std::move(set).error().in(fmt::format("could not set input map entry {}", key)));
      }
    }
  }
  if (!has_values && input.get_object().empty()) return std::string();
  return json::dump(input);
}

Result<std::uint32_t> parse_memory(const ArgoList& list) {
  if (!list.has("maxMemoryMib")) return 0;
  const std::string text = list.text("maxMemoryMib");
  const auto number =
      parse_number<std::int64_t>(std::string_view(text).substr(text.starts_with('+') ? 1 : 0));
  if (!number) {
    return invalid(
        fmt::format("failed to parse parameter maxMemoryMib: strconv.Atoi: parsing "
                    "\"{}\": invalid syntax",
                    text));
  }
  // As in yoke's plugin: a number that no memory can have means the default.
  if (*number < 0 || *number > limits::kFlightMemoryMibMax) return 0;
  return static_cast<std::uint32_t>(*number);
}

Result<std::map<std::string, ArgoSecretRef>> parse_refs(const ArgoList& list) {
  std::map<std::string, ArgoSecretRef> refs;
  const json::Object* const given = list.map("refs");
  if (given == nullptr) return refs;
  if (given->size() > kArgoRefsMax) {
    return invalid(fmt::format("parameter refs has more than {} references", kArgoRefsMax));
  }
  for (const auto& member : *given) {
    const json::Value& ref = member.value();
    ArgoSecretRef& read = refs[std::string(member.key())];
    read = {.secret = std::string(json::string_at(ref, {"secret"})),
            .namespace_ = std::string(json::string_at(ref, {"namespace"})),
            .key = std::string(json::string_at(ref, {"key"}))};
    if (read.secret.empty() || read.key.empty()) {
      return invalid(fmt::format("parameter refs: {} needs the members secret and key",
                                 std::string_view(member.key())));
    }
  }
  return refs;
}

Result<ArgoParameters> parse_list(std::string_view text, const ReadArgoFile& read_file) {
  const ArgoList list = HANGAR_TRY(ArgoList::parse(text));
  ArgoParameters parameters;
  if (const std::string build = list.text("build"); !build.empty()) {
    const Result<bool> parsed = parse_go_bool(build);
    if (!parsed) return std::unexpected(Error(parsed.error()).in("parsing parameter build"));
    parameters.build = *parsed;
  }
  parameters.wasm = list.text("wasm");
  parameters.wasm.erase(0, parameters.wasm.find_first_not_of('/'));
  if (parameters.wasm.empty() && !parameters.build) {
    return invalid("wasm parameter must be provided or build enabled");
  }
  if (!parameters.wasm.empty() && parameters.build) {
    return invalid("wasm asset cannot be present and build enabled");
  }
  parameters.input = HANGAR_TRY(parse_input(list, read_file));
  parameters.args = list.list("args");
  parameters.refs = HANGAR_TRY(parse_refs(list));
  parameters.resource_matchers = list.list("resourceMatchers");
  parameters.cluster_access = parse_go_bool(list.text("clusterAccess")).value_or(false);
  parameters.memory_mib_max = HANGAR_TRY(parse_memory(list));
  if (list.has("timeout")) {
    const Result<Duration> timeout = parse_go_duration(list.text("timeout"));
    if (!timeout) {
      return std::unexpected(Error(timeout.error()).in("failed to parse parameter timeout"));
    }
    parameters.timeout = *timeout;
  }
  parameters.checksum = list.text("checksum");
  parameters.insecure = parse_go_bool(list.text("insecure")).value_or(false);
  return parameters;
}

std::optional<std::string> variable_in(std::span<const std::string> variables,
                                       std::string_view name) {
  for (const std::string& variable : variables) {
    if (variable.size() > name.size() && variable.starts_with(name) &&
        variable[name.size()] == '=') {
      return variable.substr(name.size() + 1);
    }
  }
  return std::nullopt;
}

}  // namespace

Result<ArgoParameters> parse_argo_parameters(std::string_view text, const ReadArgoFile& read_file) {
  Result<ArgoParameters> parsed = parse_list(text, read_file);
  if (!parsed) return std::unexpected(std::move(parsed).error().in("invalid config"));
  return parsed;
}

Result<ArgoEnvironment> read_argo_environment(std::span<const std::string> variables,
                                              const ReadArgoFile& read_file) {
  constexpr std::string_view kFlightPrefix = "ARGOCD_ENV_";
  ArgoEnvironment environment;
  for (const std::string& variable : variables) {
    if (!variable.starts_with(kFlightPrefix)) continue;
    std::string rest = variable.substr(kFlightPrefix.size());
    if (rest.contains('=') && !rest.starts_with('=')) {
      environment.flight_variables.push_back(std::move(rest));
    }
  }
  std::vector<std::string> problems;
  const auto required = [&](std::string_view name) {
    const std::optional<std::string> found = variable_in(variables, name);
    if (!found) problems.push_back(fmt::format("{}: field is required", name));
    if (found && found->empty()) {
      problems.push_back(fmt::format("{}: field is declared but empty: cannot be empty", name));
    }
    return found.value_or(std::string());
  };
  environment.argo_namespace =
      variable_in(variables, "ARGOCD_NAMESPACE").value_or(std::string("default"));
  environment.name = required("ARGOCD_APP_NAME");
  environment.namespace_ = required("ARGOCD_APP_NAMESPACE");
  if (const std::string text = required("ARGOCD_APP_PARAMETERS"); !text.empty()) {
    Result<ArgoParameters> parameters = parse_argo_parameters(text, read_file);
    if (parameters) {
      environment.parameters = *std::move(parameters);
    } else {
      problems.push_back("ARGOCD_APP_PARAMETERS: " + parameters.error().message());
    }
  }
  if (!problems.empty()) {
    return invalid(fmt::format("failed to parse variable(s): {}", fmt::join(problems, "; ")));
  }
  return environment;
}

Result<std::string> fill_in_url(std::string_view url,
                                const std::map<std::string, std::string>& values) {
  std::string filled;
  while (true) {
    const std::size_t begin = url.find("{{");
    filled += url.substr(0, begin);
    if (begin == std::string_view::npos) return filled;
    const std::size_t end = url.find("}}", begin);
    if (end == std::string_view::npos) return invalid("invalid template: {{ without }}");
    std::string_view name = url.substr(begin + 2, end - begin - 2);
    while (name.starts_with(' '))
      name.remove_prefix(1);
    while (name.ends_with(' '))
      name.remove_suffix(1);
    if (!name.starts_with('.')) {
      return invalid(
          fmt::format("invalid template: {{{{{}}}}}: only {{{{ .name }}}} is possible", name));
    }
    const auto value = values.find(std::string(name.substr(1)));
    if (value == values.end()) {
      return invalid(
          fmt::format("failed to execute template: refs has no entry \"{}\"", name.substr(1)));
    }
    filled += value->second;
    url.remove_prefix(end + 2);
  }
}

void mark_for_argo(airways::Stages& stages, std::string_view release, std::string_view namespace_) {
  for (std::size_t wave = 0; wave < stages.size(); ++wave) {
    for (json::Value& resource : stages[wave]) {
      if (stages.size() > 1) {
        json::set_at(resource, {"metadata", "annotations", kSyncWaveAnnotation},
                     json::Value(std::to_string(wave)));
      }
      json::set_at(resource, {"metadata", "labels", airways::kManagedByLabel},
                   json::Value("yokecd"));
      json::set_at(resource, {"metadata", "annotations", airways::kReleaseAnnotation},
                   json::Value(release));
      json::set_at(resource, {"metadata", "annotations", airways::kNamespaceAnnotation},
                   json::Value(namespace_));
    }
  }
}

}  // namespace hangar::commands
