#include "airways/output.h"

#include "airways/limits.h"
#include "airways/resource_ref.h"
#include "base/invalid.h"
#include "base/result.h"
#include "json/value.h"
#include "json/yaml.h"
#include "kube/object.h"
#include "wasm/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace hangar::airways {

namespace {

constexpr std::string_view kGrammar =
    "input must be resource, list of resources, or list of list of resources";

constexpr std::string_view kBlanks = " \t\r\n";

std::unexpected<Error> not_the_grammar(std::string_view where) {
  return invalid(where.empty() ? std::string(kGrammar) : fmt::format("{}: {}", kGrammar, where));
}

// Whether the server takes the name for one segment of a URL path; any other would name another
// object.
bool is_path_segment(std::string_view name) {
  return name != "." && name != ".." && name.find_first_of("/%") == std::string_view::npos;
}

bool is_api_version(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return !text.empty();
  const std::string_view version = text.substr(slash + 1);
  return slash > 0 && !version.empty() && version.find('/') == std::string_view::npos;
}

// The member as text; empty when it is missing or null.
Result<std::string_view> text_member(const json::Value& object, json::Path path,
                                     std::string_view name, std::string_view where) {
  const json::Value* member = json::find(object, path);
  if (member == nullptr || member->is_null()) return std::string_view();
  if (!member->is_string()) return invalid(fmt::format("{}: {} is not a string", where, name));
  return std::string_view(member->get_string());
}

Result<> check_resource(const json::Value& resource, std::string_view where) {
  const json::Object* object = resource.if_object();
  if (object == nullptr || object->empty()) {
    return not_the_grammar(fmt::format("{} is not a resource", where));
  }
  const std::string_view kind = HANGAR_TRY(text_member(resource, {"kind"}, "kind", where));
  if (kind.empty()) return invalid(fmt::format("{}: kind is missing", where));
  const std::string_view api_version =
      HANGAR_TRY(text_member(resource, {"apiVersion"}, "apiVersion", where));
  if (api_version.empty())
    return invalid(fmt::format("{} ({}): apiVersion is missing", where, kind));
  if (!is_api_version(api_version)) {
    return invalid(
        fmt::format("{} ({}): apiVersion \"{}\" is not a group/version", where, kind, api_version));
  }
  if (kind == "List" && api_version == "v1") {
    return invalid(fmt::format("{}: kind List is not expanded; print its items as a list", where));
  }

  const json::Value* metadata = json::find(resource, {"metadata"});
  if (metadata != nullptr && !metadata->is_null() && !metadata->is_object()) {
    return invalid(fmt::format("{} ({}): metadata is not an object", where, kind));
  }
  const std::string_view name =
      HANGAR_TRY(text_member(resource, {"metadata", "name"}, "metadata.name", where));
  if (name.empty()) {
    const std::string_view prefix = json::string_at(resource, {"metadata", "generateName"});
    if (prefix.empty())
      return invalid(fmt::format("{} ({}): metadata.name is missing", where, kind));
    return invalid(
        fmt::format("{} ({}): metadata.generateName \"{}\" would make another object at every "
                    "evaluation; set metadata.name",
                    where, kind, prefix));
  }
  if (!is_path_segment(name)) {
    return invalid(fmt::format("{} ({}): metadata.name \"{}\" is not a name", where, kind, name));
  }
  const std::string_view namespace_ =
      HANGAR_TRY(text_member(resource, {"metadata", "namespace"}, "metadata.namespace", where));
  if (!is_path_segment(namespace_)) {
    return invalid(fmt::format("{} ({} \"{}\"): metadata.namespace \"{}\" is not a name", where,
                               kind, name, namespace_));
  }
  return {};
}

Result<Stage> parse_stage(json::Array resources, std::string_view stage) {
  Stage parsed;
  parsed.reserve(resources.size());
  for (std::size_t i = 0; i < resources.size(); ++i) {
    const std::string where = fmt::format("{}resource {}", stage, i + 1);
    if (resources[i].is_null()) return invalid(where + " is null");
    HANGAR_TRY(check_resource(resources[i], where));
    parsed.push_back(std::move(resources[i]));
  }
  return parsed;
}

Result<Stages> parse_array(json::Array items) {
  const auto is_array = [](const json::Value& item) { return item.is_array(); };
  Stages stages;
  if (!std::ranges::any_of(items, is_array)) {
    stages.push_back(HANGAR_TRY(parse_stage(std::move(items), "")));
    return stages;
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    // Go prints null for a stage without elements.
    if (items[i].is_null()) continue;
    json::Array* stage = items[i].if_array();
    if (stage == nullptr) return not_the_grammar(fmt::format("item {} is not a list", i + 1));
    stages.push_back(HANGAR_TRY(parse_stage(std::move(*stage), fmt::format("stage {}, ", i + 1))));
  }
  return stages;
}

Result<Stages> parse_stages(std::vector<json::Value> documents) {
  if (documents.size() == 1) {
    if (json::Array* items = documents.front().if_array()) return parse_array(std::move(*items));
    const json::Object* object = documents.front().if_object();
    if (object == nullptr || object->empty()) return not_the_grammar("");
    HANGAR_TRY(check_resource(documents.front(), "resource"));
    Stages stages(1);
    stages.front().push_back(std::move(documents.front()));
    return stages;
  }
  Stages stages(1);
  stages.front().reserve(documents.size());
  for (std::size_t i = 0; i < documents.size(); ++i) {
    HANGAR_TRY(check_resource(documents[i], fmt::format("document {}", i + 1)));
    stages.front().push_back(std::move(documents[i]));
  }
  return stages;
}

// Other resources of the stage may live in it or be of its kind.
bool comes_first(const json::Value& resource) {
  const kube::GroupKind kind = ref_of(resource).kind;
  return is_namespace(kind) || is_crd(kind);
}

Stages split_stages(Stages stages) {
  Stages split;
  for (Stage& stage : stages) {
    Stage first;
    Stage rest;
    for (json::Value& resource : stage) {
      (comes_first(resource) ? first : rest).push_back(std::move(resource));
    }
    if (!first.empty()) split.push_back(std::move(first));
    if (!rest.empty()) split.push_back(std::move(rest));
  }
  return split;
}

}  // namespace

Result<Output> parse_output(std::string_view text) {
  if (text.size() > limits::kFlightOutputBytesMax) {
    return fail(ErrorKind::LimitExceeded, fmt::format("output of {} bytes is over the limit of {}",
                                                      text.size(), limits::kFlightOutputBytesMax));
  }
  const auto nothing = [] {
    return invalid("failed to takeoff: resource provided is either empty or invalid");
  };
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return nothing();
  if (text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin) == "null") return Output{};
  // JSON is parsed as JSON, and one document that does not parse fails the whole text.
  Result<std::vector<json::Value>> documents = json::parse_yaml_stream(text);
  if (!documents) return std::unexpected(std::move(documents).error().in("parse flight output"));
  if (documents->empty()) return nothing();

  Output output{.stages = split_stages(HANGAR_TRY(parse_stages(*std::move(documents))))};
  if (const std::size_t count = resource_count(output.stages);
      count > limits::kFlightResourcesMax) {
    return fail(ErrorKind::LimitExceeded, fmt::format("{} resources are over the limit of {}",
                                                      count, limits::kFlightResourcesMax));
  }
  return output;
}

Result<> check_unique(const Stages& stages) {
  std::unordered_set<ResourceRef> seen;
  for (const Stage& stage : stages) {
    for (const json::Value& resource : stage) {
      const auto [ref, is_new] = seen.insert(ref_of(resource));
      if (!is_new) return invalid(fmt::format("{} is printed twice", ref->to_string()));
    }
  }
  return {};
}

}  // namespace hangar::airways
