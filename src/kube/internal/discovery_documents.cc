#include "kube/internal/discovery_documents.h"

#include "base/result.h"
#include "json/value.h"
#include "kube/object.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::kube::internal {

namespace {

std::string text_at(const json::Value& value, json::Path path) {
  return std::string(json::string_at(value, path));
}

// The elements of an array, or none.
const json::Array& elements(const json::Value& value, json::Path path) {
  static const json::Array none;
  const json::Array* const array = json::array_at(value, path);
  return array == nullptr ? none : *array;
}

std::vector<Resource> aggregated_resources(const json::Value& version, const std::string& group) {
  std::vector<Resource> out;
  for (const json::Value& resource : elements(version, {"resources"})) {
    // An entry without a kind exists for its subresources only.
    std::string kind = text_at(resource, {"responseKind", "kind"});
    if (kind.empty()) continue;
    out.push_back({.group = group,
                   .version = text_at(version, {"version"}),
                   .plural = text_at(resource, {"resource"}),
                   .kind = std::move(kind),
                   .namespaced = json::string_at(resource, {"scope"}) == "Namespaced"});
  }
  return out;
}

}  // namespace

Result<std::map<std::string, ServedGroup>> parse_aggregated(const json::Value& document) {
  if (json::string_at(document, {"kind"}) != "APIGroupDiscoveryList") {
    return fail(ErrorKind::InvalidInput, "the server has no aggregated discovery");
  }
  std::map<std::string, ServedGroup> groups;
  for (const json::Value& item : elements(document, {"items"})) {
    const std::string name = text_at(item, {"metadata", "name"});
    const json::Array& versions = elements(item, {"versions"});
    const bool is_stale = std::ranges::any_of(versions, [](const json::Value& version) {
      return json::string_at(version, {"freshness"}) == "Stale";
    });
    if (is_stale) continue;
    ServedGroup& group = groups[name];
    for (const json::Value& version : versions) {
      group.push_back({text_at(version, {"version"}), aggregated_resources(version, name)});
    }
  }
  return groups;
}

std::vector<std::string> parse_versions(const json::Value& document) {
  std::vector<std::string> versions;
  for (const json::Value& version : elements(document, {"versions"})) {
    versions.push_back(version.is_string() ? std::string(version.get_string())
                                           : text_at(version, {"version"}));
  }
  const std::string_view preferred = json::string_at(document, {"preferredVersion", "version"});
  if (const auto at = std::ranges::find(versions, preferred); at != versions.end()) {
    std::rotate(versions.begin(), at, at + 1);
  }
  std::erase(versions, std::string());
  return versions;
}

std::vector<Resource> parse_resources(const json::Value& document, std::string_view group,
                                      std::string_view version) {
  std::vector<Resource> out;
  for (const json::Value& resource : elements(document, {"resources"})) {
    std::string plural = text_at(resource, {"name"});
    std::string kind = text_at(resource, {"kind"});
    // "pods/status" is a subresource, not a resource.
    if (plural.empty() || kind.empty() || plural.contains('/')) continue;
    out.push_back({.group = std::string(group),
                   .version = std::string(version),
                   .plural = std::move(plural),
                   .kind = std::move(kind),
                   .namespaced = json::bool_at(resource, {"namespaced"})});
  }
  return out;
}

}  // namespace hangar::kube::internal
