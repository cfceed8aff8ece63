#include "simulation/api_server.h"

#include "base/time.h"
#include "json/value.h"
#include "simulation/field_ownership.h"
#include "simulation/selectors.h"
#include "simulation/statuses.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::simulation {

namespace {

// As the real server by default.
constexpr std::size_t kHistoryMax = 100'000;
constexpr std::string_view kForeground = "foregroundDeletion";
constexpr std::string_view kOrphan = "orphan";
constexpr std::string_view kMetadataKind = "as=PartialObjectMetadata";

std::string collection_of(std::string_view group, std::string_view plural) {
  return group.empty() ? std::string(plural) : fmt::format("{}.{}", plural, group);
}

std::string collection_of(const ServedKind& kind) {
  return collection_of(kind.group, kind.plural);
}

std::string api_version(const ServedKind& kind) {
  return kind.group.empty() ? kind.version : kind.group + "/" + kind.version;
}

std::vector<ServedKind> built_in_kinds() {
  const std::string rbac = "rbac.authorization.k8s.io";
  return {
      {.version = "v1",
       .plural = "namespaces",
       .kind = "Namespace",
       .is_namespaced = false,
       .has_status = true},
      {.version = "v1", .plural = "configmaps", .kind = "ConfigMap"},
      {.version = "v1", .plural = "secrets", .kind = "Secret"},
      {.version = "v1", .plural = "serviceaccounts", .kind = "ServiceAccount"},
      {.version = "v1", .plural = "events", .kind = "Event", .creates_on_update = true},
      {.version = "v1",
       .plural = "nodes",
       .kind = "Node",
       .is_namespaced = false,
       .has_status = true},
      {.version = "v1", .plural = "pods", .kind = "Pod", .has_status = true},
      {.version = "v1", .plural = "services", .kind = "Service", .has_status = true},
      {.group = "apps",
       .version = "v1",
       .plural = "deployments",
       .kind = "Deployment",
       .has_status = true,
       .has_generation = true},
      {.group = "apps",
       .version = "v1",
       .plural = "controllerrevisions",
       .kind = "ControllerRevision"},
      {.group = "batch",
       .version = "v1",
       .plural = "jobs",
       .kind = "Job",
       .has_status = true,
       .has_generation = true},
      {.group = "node.k8s.io",
       .version = "v1",
       .plural = "runtimeclasses",
       .kind = "RuntimeClass",
       .is_namespaced = false},
      {.group = "coordination.k8s.io",
       .version = "v1",
       .plural = "leases",
       .kind = "Lease",
       .creates_on_update = true,
       .needs_version = true},
      {.group = rbac, .version = "v1", .plural = "roles", .kind = "Role"},
      {.group = rbac, .version = "v1", .plural = "rolebindings", .kind = "RoleBinding"},
      {.group = rbac,
       .version = "v1",
       .plural = "clusterroles",
       .kind = "ClusterRole",
       .is_namespaced = false},
      {.group = rbac,
       .version = "v1",
       .plural = "clusterrolebindings",
       .kind = "ClusterRoleBinding",
       .is_namespaced = false},
      {.group = "apiextensions.k8s.io",
       .version = "v1",
       .plural = "customresourcedefinitions",
       .kind = "CustomResourceDefinition",
       .is_namespaced = false,
       .has_status = true,
       .has_generation = true,
       .needs_version = true},
  };
}

std::string decode(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned char byte = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 3, byte, 16).ptr ==
            text.data() + i + 3) {
      out += static_cast<char>(byte);
      i += 2;
    } else {
      out += text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

std::vector<std::string> split(std::string_view path) {
  std::vector<std::string> out;
  while (!path.empty()) {
    const std::size_t end = path.find('/');
    if (end != 0) out.push_back(decode(path.substr(0, end)));
    if (end == std::string_view::npos) break;
    path.remove_prefix(end + 1);
  }
  return out;
}

std::map<std::string, std::string> parse_query(std::string_view text) {
  std::map<std::string, std::string> out;
  while (!text.empty()) {
    const std::size_t end = text.find('&');
    const std::string_view one = text.substr(0, end);
    const std::size_t equals = one.find('=');
    if (equals != std::string_view::npos) {
      out.emplace(decode(one.substr(0, equals)), decode(one.substr(equals + 1)));
    }
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return out;
}

std::uint64_t number(std::string_view text) {
  std::uint64_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

json::Value without_nulls(json::Value value) {
  if (!value.is_object()) return value;
  std::vector<std::string> nulls;
  for (auto& [name, member] : value.as_object()) {
    if (member.is_null()) {
      nulls.emplace_back(name);
    } else {
      member = without_nulls(std::move(member));
    }
  }
  for (const std::string& name : nulls)
    value.as_object().erase(name);
  return value;
}

json::Value merge_patched(json::Value target, const json::Value& patch) {
  if (!patch.is_object()) return patch;
  if (!target.is_object()) target = json::Object{};
  for (const auto& [name, member] : patch.as_object()) {
    if (member.is_null()) {
      target.as_object().erase(name);
    } else if (json::Value* const old = target.as_object().if_contains(name)) {
      *old = merge_patched(std::move(*old), member);
    } else {
      target.as_object()[name] = merge_patched(json::Value(), member);
    }
  }
  return target;
}

void merge_conditions(json::Array& conditions, const json::Array& patch) {
  for (const json::Value& one : patch) {
    const std::string_view type = json::string_at(one, {"type"});
    auto* const old = std::ranges::find_if(conditions, [type](const json::Value& other) {
      return json::string_at(other, {"type"}) == type;
    });
    if (json::string_at(one, {"$patch"}) == "delete") {
      if (old != conditions.end()) conditions.erase(old);
    } else if (old != conditions.end()) {
      *old = merge_patched(std::move(*old), one);
    } else {
      conditions.push_back(merge_patched(json::Value(), one));
    }
  }
}

// A strategic merge patch: conditions are merged by their types. Other lists are not known to be
// maps, and are replaced.
json::Value strategically_patched(json::Value target, json::Value patch) {
  json::Array merged;
  const json::Array* const conditions = json::array_at(patch, {"status", "conditions"});
  if (conditions == nullptr) return merge_patched(std::move(target), patch);
  if (const json::Array* const old = json::array_at(target, {"status", "conditions"}))
    merged = *old;
  merge_conditions(merged, *conditions);
  json::set_at(patch, {"status", "conditions"}, std::move(merged));
  return merge_patched(std::move(target), patch);
}

std::string_view text_of(const json::Value* value) {
  if (value == nullptr || !value->is_string()) return {};
  return value->as_string();
}

// RFC 6902 on objects, but for lists' elements. False: the patch does not apply.
bool json_patch(json::Value& target, const json::Value& operations) {
  if (!operations.is_array()) return false;
  for (const json::Value& one : operations.as_array()) {
    const std::string_view op = json::string_at(one, {"op"});
    std::vector<std::string> path;
    std::string_view rest = json::string_at(one, {"path"});
    while (rest.starts_with('/')) {
      rest.remove_prefix(1);
      std::string name(rest.substr(0, rest.find('/')));
      rest.remove_prefix(name.size());
      for (std::size_t at = 0; (at = name.find("~1", at)) != std::string::npos;)
        name.replace(at, 2, "/");
      path.push_back(std::move(name));
    }
    if (path.empty()) return false;
    json::Value* parent = &target;
    for (std::size_t i = 0; i + 1 < path.size(); ++i) {
      parent = parent->is_object() ? parent->as_object().if_contains(path[i]) : nullptr;
      if (parent == nullptr) return false;
    }
    if (!parent->is_object()) return false;
    json::Object& members = parent->as_object();
    json::Value* const old = members.if_contains(path.back());
    const json::Value* const value = json::find(one, {"value"});
    if (op == "test") {
      if (value == nullptr || old == nullptr || !json::equal(*old, *value)) return false;
    } else if (op == "remove") {
      if (old == nullptr) return false;
      members.erase(path.back());
    } else if (op == "add" || op == "replace") {
      if (value == nullptr || (op == "replace" && old == nullptr)) return false;
      members[path.back()] = *value;
    } else {
      return false;
    }
  }
  return true;
}

std::vector<std::string> finalizers_of(const json::Value& object) {
  std::vector<std::string> out;
  if (const json::Array* const list = json::array_at(object, {"metadata", "finalizers"})) {
    for (const json::Value& one : *list)
      out.emplace_back(text_of(&one));
  }
  return out;
}

void set_finalizers(json::Value& object, const std::vector<std::string>& finalizers) {
  if (finalizers.empty()) return json::erase_at(object, {"metadata", "finalizers"});
  json::Array list;
  for (const std::string& one : finalizers)
    list.emplace_back(one);
  json::set_at(object, {"metadata", "finalizers"}, std::move(list));
}

// Writes and reads the object as the real server's types do: they leave out empty maps and lists of
// the metadata, and always write a structure that is not behind a pointer.
void normalize(const ServedKind& kind, json::Value& object) {
  for (const char* name : {"labels", "annotations", "finalizers", "ownerReferences"}) {
    const json::Value* const value = json::find(object, {"metadata", name});
    if (value == nullptr) continue;
    const bool is_empty = value->is_null() || (value->is_object() && value->as_object().empty()) ||
                          (value->is_array() && value->as_array().empty());
    if (is_empty) json::erase_at(object, {"metadata", name});
  }
  const auto is_null = [&object](std::string_view name) {
    const json::Value* const value = json::find(object, {name});
    return value == nullptr || value->is_null();
  };
  if (kind.kind == "Lease" && is_null("spec")) json::set_at(object, {"spec"}, json::Object{});
  if (kind.kind == "Secret" && is_null("type")) json::set_at(object, {"type"}, "Opaque");
  if (kind.kind == "ConfigMap" || kind.kind == "Secret") {
    const json::Value* const data = json::find(object, {"data"});
    if (is_null("data") || (data->is_object() && data->as_object().empty())) {
      json::erase_at(object, {"data"});
    }
  }
}

// What an object has that nobody wrote.
json::Value nothing_of(const ServedKind& kind) {
  json::Value out = json::Object{};
  normalize(kind, out);
  return out;
}

bool is_deleting(const json::Value& object) {
  return json::find(object, {"metadata", "deletionTimestamp"}) != nullptr;
}

// The object without what does not count for its generation.
json::Value content_of(const json::Value& object) {
  json::Value out = object;
  json::erase_at(out, {"metadata"});
  json::erase_at(out, {"status"});
  return out;
}

void keep(json::Value& object, const json::Value& old, json::Path path) {
  if (const json::Value* const value = json::find(old, path)) {
    json::set_at(object, path, *value);
  } else {
    json::erase_at(object, path);
  }
}

json::Value metadata_only(const json::Value& object) {
  const json::Value* const metadata = json::find(object, {"metadata"});
  return json::Object{{"kind", "PartialObjectMetadata"},
                      {"apiVersion", "meta.k8s.io/v1"},
                      {"metadata", metadata == nullptr ? json::Value() : *metadata}};
}

bool matches(std::string_view label_selector, std::string_view field_selector,
             const json::Value& object) {
  return labels_match(label_selector, object) && fields_match(field_selector, object);
}

std::string line_of(std::string_view type, json::Value object) {
  return json::dump(json::Object{{"type", json::String(type)}, {"object", std::move(object)}}) +
         "\n";
}

}  // namespace

// A request's path and query, understood.
struct ApiServer::Target {
  const ServedKind* kind = nullptr;
  std::string collection;
  std::string namespace_;
  std::string name;
  std::string subresource;
  std::map<std::string, std::string> query;

  [[nodiscard]] std::string option(const std::string& name_of_option) const {
    const auto found = query.find(name_of_option);
    return found == query.end() ? "" : found->second;
  }
  [[nodiscard]] bool is_dry_run() const { return option("dryRun") == "All"; }
  [[nodiscard]] FieldManager manager(bool is_apply) const {
    return {.name = option("fieldManager"), .is_apply = is_apply, .subresource = subresource};
  }
  [[nodiscard]] Named named(std::string_view object) const {
    return {.group = kind->group, .plural = kind->plural, .name = std::string(object)};
  }
};

ApiServer::ApiServer(std::uint64_t seed) : seed_(seed) {
  for (ServedKind& kind : built_in_kinds()) {
    std::string collection = collection_of(kind);
    kinds_.emplace(std::move(collection), std::move(kind));
  }
  for (const char* name : {"default", "kube-system"}) {
    json::Value object = json::Object{
        {"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", json::Object{{"name", name}}}};
    (void)handle({.method = "POST", .target = "/api/v1/namespaces", .body = json::dump(object)},
                 WallTime());
  }
}

bool ApiServer::is_watch(const ApiRequest& request) {
  const std::size_t query = request.target.find('?');
  if (request.method != "GET" || query == std::string::npos) return false;
  const auto options = parse_query(std::string_view(request.target).substr(query + 1));
  const auto watch = options.find("watch");
  return watch != options.end() && (watch->second == "true" || watch->second == "1");
}

std::optional<ApiServer::Target> ApiServer::parse(const ApiRequest& request) const {
  const std::size_t query = request.target.find('?');
  std::vector<std::string> parts = split(std::string_view(request.target).substr(0, query));
  Target target;
  if (query != std::string::npos) {
    target.query = parse_query(std::string_view(request.target).substr(query + 1));
  }
  std::size_t at = 0;
  std::string group;
  if (!parts.empty() && parts[0] == "api") {
    at = 2;
  } else if (parts.size() > 2 && parts[0] == "apis") {
    group = parts[1];
    at = 3;
  }
  if (at == 0 || parts.size() <= at) return std::nullopt;
  if (parts[at] == "namespaces" && parts.size() > at + 2 && parts[at + 2] != "status") {
    target.namespace_ = parts[at + 1];
    at += 2;
  }
  target.collection = collection_of(group, parts[at]);
  const auto kind = kinds_.find(target.collection);
  if (kind == kinds_.end() || kind->second.version != parts[group.empty() ? 1 : 2]) {
    return std::nullopt;
  }
  target.kind = &kind->second;
  if (parts.size() > at + 1) target.name = parts[at + 1];
  if (parts.size() > at + 2) target.subresource = parts[at + 2];
  if (!target.subresource.empty() && !(target.subresource == "status" && target.kind->has_status)) {
    return std::nullopt;
  }
  return target;
}

std::optional<ApiAnswer> ApiServer::refuse(const ApiRequest& request, const Target& target,
                                           std::string_view verb) const {
  if (request.impersonated) {
    const Caller& who = *request.impersonated;
    constexpr std::string_view kPrefix = "system:serviceaccount:";
    std::string resource = "users";
    std::string namespace_;
    std::string name = who.user;
    if (who.user.starts_with(kPrefix)) {
      const std::string_view rest = std::string_view(who.user).substr(kPrefix.size());
      resource = "serviceaccounts";
      namespace_ = rest.substr(0, rest.find(':'));
      name = rest.substr(rest.find(':') + 1);
    }
    if (!allows(request.caller, "impersonate", "", resource, namespace_, name)) {
      return forbidden({.user = request.caller.user, .verb = "impersonate"},
                       {.plural = resource, .name = name}, namespace_);
    }
  }
  const Caller& caller = request.impersonated ? *request.impersonated : request.caller;
  const std::string resource = target.subresource.empty()
                                   ? target.kind->plural
                                   : target.kind->plural + "/" + target.subresource;
  if (allows(caller, verb, target.kind->group, resource, target.namespace_, target.name)) {
    return std::nullopt;
  }
  return forbidden({.user = caller.user, .verb = std::string(verb), .resource = resource},
                   target.named(target.name), target.namespace_);
}

ApiAnswer ApiServer::handle(const ApiRequest& request, WallTime now) {
  ++request_count_;
  const std::string path = request.target.substr(0, request.target.find('?'));
  const bool is_review = path.starts_with("/apis/authorization.k8s.io/v1/");
  const std::optional<Target> target = is_review ? Target() : parse(request);
  if (!target) return request.method == "GET" ? discover(path) : not_served();
  if (is_review) return review(request, *target);

  const bool is_named = !target->name.empty();
  json::Value body;
  if (!request.body.empty()) {
    Result<json::Value> parsed = json::parse(request.body);
    if (!parsed) return bad_request("the body is not JSON: " + parsed.error().message());
    body = *std::move(parsed);
  }
  const auto answer_of = [&](std::string_view verb, auto&& act) -> ApiAnswer {
    if (auto refusal = refuse(request, *target, verb)) return *std::move(refusal);
    ApiAnswer answer = act();
    if (request.accept.contains(kMetadataKind) && answer.status < 300 && is_named) {
      answer.body = metadata_only(answer.body);
    }
    return answer;
  };
  if (request.method == "GET") {
    if (is_named) return answer_of("get", [&] { return get(*target); });
    return answer_of("list", [&] { return list(request, *target); });
  }
  if (request.method == "POST" && !is_named) {
    return answer_of("create", [&] { return create(*target, without_nulls(body), now); });
  }
  if (request.method == "PUT" && is_named) {
    return answer_of("update", [&] { return update(*target, without_nulls(body), now); });
  }
  if (request.method == "PATCH" && is_named) {
    return answer_of("patch", [&] { return patch(request, *target, now); });
  }
  if (request.method == "DELETE" && is_named) {
    return answer_of("delete", [&] { return remove(*target, body, now); });
  }
  return method_not_allowed();
}

ApiAnswer ApiServer::discover(const std::string& path) const {
  if (path == "/version") {
    return {.body = json::Object{{"major", "1"}, {"minor", "34"}, {"gitVersion", "v1.34.0"}}};
  }
  std::map<std::string, std::string> groups;  // The version of each.
  for (const auto& [collection, kind] : kinds_)
    groups.emplace(kind.group, kind.version);
  const auto group_document = [](const std::string& name, const std::string& version) {
    const json::Value at =
        json::Object{{"groupVersion", name + "/" + version}, {"version", version}};
    return json::Object{{"name", name}, {"versions", json::Array{at}}, {"preferredVersion", at}};
  };
  const std::vector<std::string> parts = split(path);
  if (path == "/api") {
    return {.body = json::Object{{"kind", "APIVersions"}, {"versions", json::Array{"v1"}}}};
  }
  if (path == "/apis") {
    json::Array list;
    for (const auto& [name, version] : groups) {
      if (!name.empty()) list.emplace_back(group_document(name, version));
    }
    return {.body = json::Object{
                {"kind", "APIGroupList"}, {"apiVersion", "v1"}, {"groups", std::move(list)}}};
  }
  if (parts.size() < 2) return not_served();
  const std::string group = parts[0] == "apis" ? parts[1] : "";
  if (!groups.contains(group)) return not_served();
  if (parts[0] == "apis" && parts.size() == 2) {
    json::Object document = group_document(group, groups.at(group));
    document["kind"] = "APIGroup";
    document["apiVersion"] = "v1";
    return {.body = std::move(document)};
  }
  if (parts.size() != (group.empty() ? 2U : 3U) || parts.back() != groups.at(group)) {
    return not_served();
  }
  json::Array resources;
  for (const auto& [collection, kind] : kinds_) {
    if (kind.group != group) continue;
    const auto entry = [&kind](const std::string& name) {
      return json::Object{
          {"name", name},
          {"singularName", ""},
          {"namespaced", kind.is_namespaced},
          {"kind", kind.kind},
          {"verbs", json::Array{"create", "delete", "get", "list", "patch", "update", "watch"}}};
    };
    resources.emplace_back(entry(kind.plural));
    if (kind.has_status) resources.emplace_back(entry(kind.plural + "/status"));
  }
  return {.body = json::Object{{"kind", "APIResourceList"},
                               {"apiVersion", "v1"},
                               {"groupVersion", group.empty() ? "v1" : group + "/" + parts.back()},
                               {"resources", std::move(resources)}}};
}

ApiAnswer ApiServer::review(const ApiRequest& request, const Target& /*target*/) {
  Result<json::Value> parsed = json::parse(request.body);
  if (!parsed) return bad_request("the body is not JSON");
  json::Value review = *std::move(parsed);
  Caller about = request.impersonated ? *request.impersonated : request.caller;
  if (request.target.contains("/subjectaccessreviews")) {
    about = {.user = std::string(json::string_at(review, {"spec", "user"}))};
    if (const json::Array* const groups = json::array_at(review, {"spec", "groups"})) {
      for (const json::Value& group : *groups)
        about.groups.emplace_back(text_of(&group));
    }
  }
  const auto attribute = [&review](std::string_view name) {
    return json::string_at(review, {"spec", "resourceAttributes", name});
  };
  std::string resource(attribute("resource"));
  if (!attribute("subresource").empty()) {
    resource += "/";
    resource += attribute("subresource");
  }
  const bool is_allowed = allows(about, attribute("verb"), attribute("group"), resource,
                                 attribute("namespace"), attribute("name"));
  json::set_at(review, {"status"}, json::Object{{"allowed", is_allowed}});
  if (json::find(review, {"metadata"}) == nullptr) {
    json::set_at(review, {"metadata"}, json::Object{});
  }
  for (const char* name : {"verb", "group", "resource", "subresource", "namespace", "name"}) {
    if (attribute(name).empty()) json::erase_at(review, {"spec", "resourceAttributes", name});
  }
  return {.status = 201, .body = std::move(review)};
}

ApiAnswer ApiServer::get(const Target& target) const {
  const json::Value* const object = find(target.collection, target.namespace_, target.name);
  if (object == nullptr) return not_found(target.named(target.name));
  return {.body = *object};
}

std::vector<json::Value> ApiServer::selected(const Target& target, Selectors selectors) const {
  std::vector<json::Value> out;
  const auto found = objects_.find(target.collection);
  if (found == objects_.end()) return out;
  for (const auto& [key, stored] : found->second) {
    if (!target.namespace_.empty() && key.first != target.namespace_) continue;
    if (selectors == Selectors::Heeded &&
        !matches(target.option("labelSelector"), target.option("fieldSelector"), stored.object)) {
      continue;
    }
    out.push_back(stored.object);
  }
  return out;
}

ApiAnswer ApiServer::list(const ApiRequest& request, const Target& target) {
  Page page{.revision = revision_};
  if (const std::string token = target.option("continue"); !token.empty()) {
    const auto found = pages_.find(token);
    if (found == pages_.end() || found->second.revision < compacted_) {
      return expired(
          "The provided continue parameter is too old to display a consistent list "
          "result.");
    }
    page = found->second;
  } else {
    page.rest = selected(target, Selectors::Ignored);
  }
  const std::uint64_t limit = number(target.option("limit"));
  const std::string label_selector = target.option("labelSelector");
  const std::string field_selector = target.option("fieldSelector");
  json::Array items;
  std::size_t taken = 0;
  const bool is_metadata = request.accept.contains(kMetadataKind);
  // A page ends when it is full: what the selectors leave out of the rest is not known then.
  while (taken < page.rest.size() && (limit == 0 || items.size() < limit)) {
    json::Value item = page.rest[taken++];
    if (!matches(label_selector, field_selector, item)) continue;
    if (is_metadata) {
      item = metadata_only(item);
    } else if (!target.kind->is_custom) {
      json::erase_at(item, {"kind"});
      json::erase_at(item, {"apiVersion"});
    }
    items.push_back(std::move(item));
  }
  json::Object metadata{{"resourceVersion", std::to_string(page.revision)}};
  // Custom kinds have no type that would leave out what is empty.
  if (target.kind->is_custom && !is_metadata) metadata["continue"] = "";
  // A name is looked up, not searched for.
  if (taken < page.rest.size() && !field_selector.starts_with("metadata.name=")) {
    page.rest.erase(page.rest.begin(), page.rest.begin() + static_cast<std::ptrdiff_t>(taken));
    const std::string token = fmt::format("page-{}", ++page_count_);
    metadata["continue"] = token;
    // The real server does not count what a selector would leave out.
    if (label_selector.empty() && field_selector.empty()) {
      metadata["remainingItemCount"] = page.rest.size();
    }
    pages_[token] = std::move(page);
  }
  return {.body = json::Object{
              {"kind", is_metadata ? "PartialObjectMetadataList" : target.kind->kind + "List"},
              {"apiVersion", is_metadata ? "meta.k8s.io/v1" : api_version(*target.kind)},
              {"metadata", std::move(metadata)},
              {"items", std::move(items)}}};
}

ApiAnswer ApiServer::create(const Target& target, json::Value object, WallTime now) {
  FieldOwners owners;
  const FieldManager manager = target.manager(/*is_apply=*/false);
  if (target.kind->has_status) json::erase_at(object, {"status"});
  if (!object.is_object()) return bad_request("the body is not an object");
  normalize(*target.kind, object);
  note_update(owners, manager, nothing_of(*target.kind), object);
  return insert(target, std::move(object), std::move(owners), now, 201);
}

ApiAnswer ApiServer::insert(const Target& target, json::Value object, FieldOwners owners,
                            WallTime now, int status) {
  const ServedKind& kind = *target.kind;
  std::string name(json::string_at(object, {"metadata", "name"}));
  if (name.empty()) {
    const std::string_view prefix = json::string_at(object, {"metadata", "generateName"});
    if (prefix.empty()) {
      return invalid(kind.group, kind.kind, "", "metadata.name", "FieldValueRequired",
                     "Required value: name or generateName is required");
    }
    name = fmt::format("{}{:05}", prefix, ++name_count_);
    json::set_at(object, {"metadata", "name"}, json::String(name));
  }
  const std::string_view said = json::string_at(object, {"metadata", "namespace"});
  if (!said.empty() && said != target.namespace_) {
    return bad_request(
        "the namespace of the provided object does not match the namespace sent on "
        "the request");
  }
  if (kind.is_namespaced) {
    json::set_at(object, {"metadata", "namespace"}, json::String(target.namespace_));
    if (find("namespaces", "", target.namespace_) == nullptr) {
      return not_found({.plural = "namespaces", .name = target.namespace_});
    }
  }
  if (const json::Value* const old = find(target.collection, target.namespace_, name)) {
    return is_deleting(*old) ? being_deleted(target.named(name))
                             : already_exists(target.named(name));
  }
  json::set_at(object, {"apiVersion"}, json::String(api_version(kind)));
  json::set_at(object, {"kind"}, json::String(kind.kind));
  json::set_at(object, {"metadata", "uid"}, json::String(next_uid()));
  json::set_at(object, {"metadata", "creationTimestamp"}, json::String(to_rfc3339(now)));
  json::erase_at(object, {"metadata", "managedFields"});
  json::erase_at(object, {"metadata", "deletionTimestamp"});
  json::erase_at(object, {"metadata", "generation"});
  if (kind.is_custom || kind.has_generation) json::set_at(object, {"metadata", "generation"}, 1);
  if (target.collection == "namespaces") {
    json::set_at(object, {"spec"}, json::Object{{"finalizers", json::Array{"kubernetes"}}});
    json::set_at(object, {"status"}, json::Object{{"phase", "Active"}});
    json::set_at(object, {"metadata", "labels", "kubernetes.io/metadata.name"}, json::String(name));
  }
  normalize(kind, object);
  if (target.is_dry_run()) return {.status = status, .body = std::move(object)};
  if (target.collection == "customresourcedefinitions.apiextensions.k8s.io") {
    serve_crd(object);
    json::set_at(
        object, {"status"},
        json::Object{{"conditions",
                      json::Array{json::Object{{"type", "NamesAccepted"}, {"status", "True"}},
                                  json::Object{{"type", "Established"}, {"status", "True"}}}}});
  }
  commit(kind, {target.namespace_, name}, json::Value(), &object);
  ApiAnswer answer{.status = status, .body = object};
  objects_[target.collection][{target.namespace_, name}] =
      Stored{.object = std::move(object), .owners = std::move(owners)};
  return answer;
}

ApiAnswer ApiServer::update(const Target& target, json::Value object, WallTime now) {
  auto& stored = objects_[target.collection];
  const auto found = stored.find({target.namespace_, target.name});
  const std::string_view name = json::string_at(object, {"metadata", "name"});
  if (!name.empty() && name != target.name) {
    return bad_request(fmt::format(
        "the name of the object ({}) does not match the name on the URL ({})", name, target.name));
  }
  if (found == stored.end()) {
    if (!target.kind->creates_on_update) return not_found(target.named(target.name));
    return create(target, std::move(object), now);
  }
  const std::string_view version = json::string_at(object, {"metadata", "resourceVersion"});
  if (version.empty() && target.kind->needs_version) {
    // The real server says the collection here in place of the kind.
    return invalid(target.kind->group, target.kind->plural, target.name, "metadata.resourceVersion",
                   "FieldValueInvalid", "Invalid value: 0: must be specified for an update");
  }
  return replace(target, found->second, std::move(object), std::nullopt);
}

ApiAnswer ApiServer::replace(const Target& target, Stored& old, json::Value object,
                             std::optional<FieldOwners> owners) {
  const ServedKind& kind = *target.kind;
  const std::string_view version = json::string_at(object, {"metadata", "resourceVersion"});
  if (!version.empty() && version != json::string_at(old.object, {"metadata", "resourceVersion"})) {
    return conflict(target.named(target.name),
                    "the object has been modified; please apply your changes to the latest "
                    "version and try again");
  }
  const std::string_view uid = json::string_at(object, {"metadata", "uid"});
  const std::string_view old_uid = json::string_at(old.object, {"metadata", "uid"});
  if (!uid.empty() && uid != old_uid) {
    return conflict(target.named(target.name),
                    fmt::format("Precondition failed: UID in precondition: {}, UID in object "
                                "meta: {}",
                                uid, old_uid));
  }
  // What a writer cannot change.
  json::set_at(object, {"apiVersion"}, json::String(api_version(kind)));
  json::set_at(object, {"kind"}, json::String(kind.kind));
  for (const char* name : {"name", "namespace", "uid", "creationTimestamp", "deletionTimestamp",
                           "deletionGracePeriodSeconds", "generation", "resourceVersion"}) {
    keep(object, old.object, {"metadata", name});
  }
  json::erase_at(object, {"metadata", "managedFields"});
  if (target.subresource == "status") {
    json::Value changed = old.object;
    if (const json::Value* const status = json::find(object, {"status"})) {
      json::set_at(changed, {"status"}, *status);
    } else {
      json::erase_at(changed, {"status"});
    }
    object = std::move(changed);
  } else if (kind.has_status) {
    keep(object, old.object, {"status"});
  }
  normalize(kind, object);
  if (is_deleting(old.object)) {
    const std::vector<std::string> had = finalizers_of(old.object);
    for (const std::string& one : finalizers_of(object)) {
      if (std::ranges::find(had, one) == had.end()) {
        return invalid(kind.group, kind.kind, target.name, "metadata.finalizers",
                       "FieldValueForbidden",
                       "Forbidden: no new finalizers can be added if the object is being deleted");
      }
    }
  }
  if ((kind.is_custom || kind.has_generation) &&
      !json::equal(content_of(object), content_of(old.object))) {
    json::set_at(object, {"metadata", "generation"},
                 json::int_at(old.object, {"metadata", "generation"}) + 1);
  }
  FieldOwners changed = owners ? *std::move(owners) : old.owners;
  // Where nobody owns anything, the real server notes nothing before the first apply.
  if (!owners && !old.owners.empty()) {
    note_update(changed, target.manager(/*is_apply=*/false), old.object, object);
  }
  const bool is_same = json::equal(object, old.object) && changed == old.owners;
  if (is_same || target.is_dry_run()) return {.body = std::move(object)};
  const Key key(target.namespace_, target.name);
  if (is_deleting(object) && finalizers_of(object).empty()) {
    ApiAnswer answer{.body = object};
    commit(kind, key, std::move(old.object), nullptr);
    objects_[target.collection].erase(key);
    return answer;
  }
  json::Value before = std::exchange(old.object, std::move(object));
  old.owners = std::move(changed);
  commit(kind, key, std::move(before), &old.object);
  return {.body = old.object};
}

ApiAnswer ApiServer::patch(const ApiRequest& request, const Target& target, WallTime now) {
  Result<json::Value> parsed = json::parse(request.body);
  if (!parsed) return bad_request("the body is not JSON");
  if (request.content_type == "application/apply-patch+yaml") {
    return apply(target, without_nulls(*std::move(parsed)), now);
  }
  auto& stored = objects_[target.collection];
  const auto found = stored.find({target.namespace_, target.name});
  if (found == stored.end()) return not_found(target.named(target.name));
  json::Value object = found->second.object;
  if (request.content_type == "application/json-patch+json") {
    if (!json_patch(object, *parsed)) {
      return status(422, "Invalid",
                    "the server rejected our request due to an error in our "
                    "request");
    }
  } else if (request.content_type == "application/merge-patch+json") {
    object = merge_patched(std::move(object), *parsed);
  } else if (request.content_type == "application/strategic-merge-patch+json" &&
             !target.kind->is_custom) {
    object = strategically_patched(std::move(object), *std::move(parsed));
  } else {
    return status(415, "UnsupportedMediaType", "the body of the request was in an unknown format");
  }
  // A patch is made for the stored state, unless it names another one.
  return replace(target, found->second, std::move(object), std::nullopt);
}

ApiAnswer ApiServer::apply(const Target& target, json::Value object, WallTime now) {
  const std::string_view name = json::string_at(object, {"metadata", "name"});
  if (!name.empty() && name != target.name) {
    return bad_request("the name of the object does not match the name on the URL");
  }
  json::set_at(object, {"metadata", "name"}, json::String(target.name));
  if (json::find(object, {"metadata", "managedFields"}) != nullptr) {
    return bad_request("metadata.managedFields must be nil");
  }
  if (target.subresource.empty() && target.kind->has_status) json::erase_at(object, {"status"});
  auto& stored = objects_[target.collection];
  const auto found = stored.find({target.namespace_, target.name});
  const bool exists = found != stored.end();
  if (!exists && !json::string_at(object, {"metadata", "uid"}).empty()) {
    return conflict(target.named(target.name), "Precondition failed: UID in precondition");
  }
  const json::Value live = exists ? found->second.object : nothing_of(*target.kind);
  FieldOwners owners = exists ? found->second.owners : FieldOwners();
  if (owners.empty()) {
    json::Value written = live;
    if (target.kind->has_status) json::erase_at(written, {"status"});
    note_update(owners, {.name = "before-first-apply", .subresource = target.subresource},
                nothing_of(*target.kind), written);
  }
  Applied applied =
      simulation::apply(live, std::move(owners), target.manager(/*is_apply=*/true), object,
                        target.kind->is_custom ? Schema::InMetadata : Schema::Everywhere);
  if (!applied.conflicts.empty() && target.option("force") != "true") {
    return apply_conflict(applied.conflicts);
  }
  if (!exists) {
    return insert(target, std::move(applied.object), std::move(applied.owners), now, 201);
  }
  keep(applied.object, object, {"metadata", "resourceVersion"});
  return replace(target, found->second, std::move(applied.object), std::move(applied.owners));
}

ApiAnswer ApiServer::remove(const Target& target, const json::Value& options, WallTime now) {
  auto& stored = objects_[target.collection];
  const Key key(target.namespace_, target.name);
  const auto found = stored.find(key);
  if (found == stored.end()) return not_found(target.named(target.name));
  json::Value& object = found->second.object;
  const auto precondition = [&](std::string_view member, std::string_view field,
                                std::string_view shown_as) -> std::optional<ApiAnswer> {
    const std::string_view wanted = json::string_at(options, {"preconditions", member});
    const std::string_view has = json::string_at(object, {"metadata", field});
    if (wanted.empty() || wanted == has) return std::nullopt;
    // The real server says the kind here in place of the collection.
    return conflict(
        {.group = target.kind->group, .plural = target.kind->kind, .name = target.name},
        fmt::format("the {} in the precondition ({}) does not match the {} in record ({}). The "
                    "object might have been {}",
                    shown_as, wanted, shown_as, has,
                    member == "uid" ? "deleted and then recreated" : "modified"));
  };
  if (auto refusal = precondition("uid", "uid", "UID")) return *std::move(refusal);
  if (auto refusal = precondition("resourceVersion", "resourceVersion", "ResourceVersion")) {
    return *std::move(refusal);
  }
  std::vector<std::string> finalizers = finalizers_of(object);
  const std::string_view policy = json::string_at(options, {"propagationPolicy"});
  if (!policy.empty()) {
    std::erase(finalizers, kForeground);
    std::erase(finalizers, kOrphan);
    if (policy == "Foreground") finalizers.emplace_back(kForeground);
    if (policy == "Orphan") finalizers.emplace_back(kOrphan);
  }
  const bool is_dry_run = target.is_dry_run() || json::array_at(options, {"dryRun"}) != nullptr;
  const bool stays = !finalizers.empty();
  if (stays && (!is_deleting(object) || finalizers != finalizers_of(object))) {
    json::Value changed = object;
    set_finalizers(changed, finalizers);
    if (!is_deleting(object)) {
      json::set_at(changed, {"metadata", "deletionTimestamp"}, json::String(to_rfc3339(now)));
      json::set_at(changed, {"metadata", "deletionGracePeriodSeconds"}, 0);
      if (const std::int64_t generation = json::int_at(changed, {"metadata", "generation"})) {
        json::set_at(changed, {"metadata", "generation"}, generation + 1);
      }
    }
    if (is_dry_run) return {.body = std::move(changed)};
    json::Value before = std::exchange(object, std::move(changed));
    commit(*target.kind, key, std::move(before), &object);
    return {.body = object};
  }
  if (stays) return {.body = object};
  // The real server forgets the version that it has checked when it takes the last finalizer away
  // on its own, and finds that the object does not have version "".
  if (!finalizers_of(object).empty() &&
      !json::string_at(options, {"preconditions", "resourceVersion"}).empty()) {
    return conflict(target.named(target.name),
                    "the ResourceVersion in the precondition () does "
                    "not match the ResourceVersion in record");
  }
  ApiAnswer answer{
      .body = deleted(target.named(target.name), json::string_at(object, {"metadata", "uid"}))};
  if (target.collection == "serviceaccounts" || target.collection == "namespaces") {
    answer.body = object;
  }
  if (is_dry_run) return answer;
  commit(*target.kind, key, std::move(object), nullptr);
  stored.erase(key);
  return answer;
}

void ApiServer::commit(const ServedKind& kind, const Key& key, json::Value before,
                       json::Value* after) {
  ++revision_;
  Change change{.revision = revision_,
                .collection = collection_of(kind),
                .namespace_ = key.first,
                .name = key.second,
                .before = std::move(before),
                .after = {},
                .request = request_count_};
  json::Value& shown = after != nullptr ? *after : change.before;
  json::set_at(shown, {"metadata", "resourceVersion"}, json::String(std::to_string(revision_)));
  if (after != nullptr) change.after = *after;
  history_.push_back(std::move(change));
  if (history_.size() > kHistoryMax) {
    compacted_ = std::max(compacted_, history_.front().revision);
    history_.pop_front();
  }
  // A copy: the handler may change objects.
  if (on_change_) on_change_(Change(history_.back()));
}

std::variant<ApiAnswer, ApiServer::Watch> ApiServer::open(const ApiRequest& request) {
  ++request_count_;
  const std::optional<Target> target = parse(request);
  if (!target) return not_served();
  if (auto refusal = refuse(request, *target, "watch")) return *std::move(refusal);
  Watch watch{.collection = target->collection,
              .namespace_ = target->namespace_,
              .label_selector = target->option("labelSelector"),
              .field_selector = target->option("fieldSelector"),
              .has_bookmarks = target->option("allowWatchBookmarks") == "true",
              .is_metadata = request.accept.contains(kMetadataKind),
              .revision = number(target->option("resourceVersion")),
              .lifetime = std::chrono::seconds(number(target->option("timeoutSeconds")))};
  const bool has_initial = target->option("sendInitialEvents") == "true";
  if (watch.revision != 0 && !has_initial) return watch;
  for (json::Value& object : selected(*target, Selectors::Heeded)) {
    watch.first_lines.push_back(
        line_of("ADDED", watch.is_metadata ? metadata_only(object) : std::move(object)));
  }
  watch.revision = revision_;
  if (has_initial) {
    json::Value end =
        json::Object{{"kind", target->kind->kind}, {"apiVersion", api_version(*target->kind)}};
    json::set_at(end, {"metadata", "resourceVersion"}, json::String(std::to_string(revision_)));
    json::set_at(end, {"metadata", "annotations", "k8s.io/initial-events-end"}, "true");
    watch.first_lines.push_back(line_of("BOOKMARK", std::move(end)));
  }
  return watch;
}

std::vector<std::string> ApiServer::next_lines(Watch& watch, bool& is_over) {
  std::vector<std::string> lines = std::exchange(watch.first_lines, {});
  if (watch.revision < compacted_) {
    lines.push_back(line_of("ERROR", expired("too old resource version").body));
    is_over = true;
    return lines;
  }
  if (!kinds_.contains(watch.collection)) is_over = true;
  const auto first = std::ranges::upper_bound(history_, watch.revision, {}, &Change::revision);
  for (auto change = first; change != history_.end(); ++change) {
    if (change->collection != watch.collection) continue;
    if (!watch.namespace_.empty() && change->namespace_ != watch.namespace_) continue;
    const auto is_selected = [&](const json::Value& object) {
      return !object.is_null() && matches(watch.label_selector, watch.field_selector, object);
    };
    const bool was = is_selected(change->before);
    const bool is = is_selected(change->after);
    if (!was && !is) continue;
    json::Value object = is ? change->after : change->before;
    json::set_at(object, {"metadata", "resourceVersion"},
                 json::String(std::to_string(change->revision)));
    lines.push_back(line_of(!was ? "ADDED"
                            : is ? "MODIFIED"
                                 : "DELETED",
                            watch.is_metadata ? metadata_only(object) : std::move(object)));
  }
  watch.revision = revision_;
  return lines;
}

std::string ApiServer::bookmark(const Watch& watch) const {
  const auto kind = kinds_.find(watch.collection);
  json::Value object = json::Object{};
  if (kind != kinds_.end()) {
    json::set_at(object, {"kind"}, json::String(kind->second.kind));
    json::set_at(object, {"apiVersion"}, json::String(api_version(kind->second)));
  }
  json::set_at(object, {"metadata", "resourceVersion"},
               json::String(std::to_string(watch.revision)));
  return line_of("BOOKMARK", std::move(object));
}

const json::Value* ApiServer::find(std::string_view collection, std::string_view namespace_,
                                   std::string_view name) const {
  const auto objects = objects_.find(std::string(collection));
  if (objects == objects_.end()) return nullptr;
  const auto found = objects->second.find({std::string(namespace_), std::string(name)});
  return found == objects->second.end() ? nullptr : &found->second.object;
}

std::vector<const json::Value*> ApiServer::all(std::string_view collection) const {
  std::vector<const json::Value*> out;
  const auto objects = objects_.find(std::string(collection));
  if (objects == objects_.end()) return out;
  for (const auto& [key, stored] : objects->second)
    out.push_back(&stored.object);
  return out;
}

bool ApiServer::collect_garbage(WallTime now) {
  struct Dependents {
    bool has_any = false;
  };
  std::map<std::string, Dependents> by_uid;
  struct Orphan {
    std::string collection;
    Key key;
  };
  std::vector<Orphan> orphans;
  std::vector<Orphan> waiting;
  for (const auto& [collection, objects] : objects_) {
    for (const auto& [key, stored] : objects)
      by_uid.try_emplace(std::string(json::string_at(stored.object, {"metadata", "uid"})));
  }
  for (const auto& [collection, objects] : objects_) {
    for (const auto& [key, stored] : objects) {
      const json::Array* const owners =
          json::array_at(stored.object, {"metadata", "ownerReferences"});
      bool is_owned = owners == nullptr || owners->empty();
      if (owners != nullptr) {
        for (const json::Value& owner : *owners) {
          const auto found = by_uid.find(std::string(json::string_at(owner, {"uid"})));
          if (found == by_uid.end()) continue;
          is_owned = true;
          found->second.has_any = true;
        }
      }
      if (!is_owned && !is_deleting(stored.object)) orphans.push_back({collection, key});
      const auto finalizers = finalizers_of(stored.object);
      if (std::ranges::find(finalizers, kForeground) != finalizers.end()) {
        waiting.push_back({collection, key});
      }
    }
  }
  const auto target_of = [this](const Orphan& one) {
    Target target;
    target.kind = &kinds_.at(one.collection);
    target.collection = one.collection;
    std::tie(target.namespace_, target.name) = one.key;
    target.query["fieldManager"] = "garbage-collector";
    return target;
  };
  for (const Orphan& one : orphans)
    (void)remove(target_of(one), json::Value(), now);
  for (const Orphan& one : waiting) {
    Stored& stored = objects_.at(one.collection).at(one.key);
    const std::string uid(json::string_at(stored.object, {"metadata", "uid"}));
    if (by_uid[uid].has_any) continue;
    json::Value object = stored.object;
    std::vector<std::string> finalizers = finalizers_of(object);
    std::erase(finalizers, kForeground);
    set_finalizers(object, finalizers);
    (void)replace(target_of(one), stored, std::move(object), std::nullopt);
  }
  return !orphans.empty() || !waiting.empty();
}

bool ApiServer::allows(const Caller& caller, std::string_view verb, std::string_view group,
                       std::string_view resource, std::string_view namespace_,
                       std::string_view name) const {
  if (std::ranges::find(caller.groups, "system:masters") != caller.groups.end()) return true;
  const auto has = [](const json::Value& rule, std::string_view list, std::string_view wanted) {
    const json::Array* const values = json::array_at(rule, {list});
    if (values == nullptr) return false;
    return std::ranges::any_of(*values, [wanted](const json::Value& one) {
      return text_of(&one) == "*" || text_of(&one) == wanted;
    });
  };
  const auto rules_allow = [&](const json::Value* role) {
    const json::Array* const rules = role == nullptr ? nullptr : json::array_at(*role, {"rules"});
    if (rules == nullptr) return false;
    return std::ranges::any_of(*rules, [&](const json::Value& rule) {
      const json::Array* const names = json::array_at(rule, {"resourceNames"});
      return has(rule, "verbs", verb) && has(rule, "apiGroups", group) &&
             has(rule, "resources", resource) &&
             (names == nullptr || names->empty() || has(rule, "resourceNames", name));
    });
  };
  constexpr std::string_view kServiceAccount = "system:serviceaccount:";
  const auto is_subject = [&](const json::Value& binding) {
    const json::Array* const subjects = json::array_at(binding, {"subjects"});
    if (subjects == nullptr) return false;
    return std::ranges::any_of(*subjects, [&](const json::Value& subject) {
      const std::string_view kind = json::string_at(subject, {"kind"});
      const std::string_view subject_name = json::string_at(subject, {"name"});
      if (kind == "Group") {
        return std::ranges::find(caller.groups, subject_name) != caller.groups.end();
      }
      if (kind == "User") return caller.user == subject_name;
      return caller.user == fmt::format("{}{}:{}", kServiceAccount,
                                        json::string_at(subject, {"namespace"}), subject_name);
    });
  };
  const auto role_of = [&](const json::Value& binding, std::string_view in) {
    const std::string_view role = json::string_at(binding, {"roleRef", "name"});
    return json::string_at(binding, {"roleRef", "kind"}) == "Role"
               ? find("roles.rbac.authorization.k8s.io", in, role)
               : find("clusterroles.rbac.authorization.k8s.io", "", role);
  };
  for (const json::Value* const binding : all("clusterrolebindings.rbac.authorization.k8s.io")) {
    if (is_subject(*binding) && rules_allow(role_of(*binding, ""))) return true;
  }
  if (namespace_.empty()) return false;
  for (const json::Value* const binding : all("rolebindings.rbac.authorization.k8s.io")) {
    if (json::string_at(*binding, {"metadata", "namespace"}) == namespace_ &&
        is_subject(*binding) && rules_allow(role_of(*binding, namespace_))) {
      return true;
    }
  }
  return false;
}

void ApiServer::serve_crd(const json::Value& crd) {
  const json::Array* const versions = json::array_at(crd, {"spec", "versions"});
  if (versions == nullptr || versions->empty()) return;
  const json::Value& version = versions->front();
  ServedKind kind{.group = std::string(json::string_at(crd, {"spec", "group"})),
                  .version = std::string(json::string_at(version, {"name"})),
                  .plural = std::string(json::string_at(crd, {"spec", "names", "plural"})),
                  .kind = std::string(json::string_at(crd, {"spec", "names", "kind"})),
                  .is_namespaced = json::string_at(crd, {"spec", "scope"}) == "Namespaced",
                  .is_custom = true,
                  .has_status = json::find(version, {"subresources", "status"}) != nullptr,
                  .has_generation = true,
                  .needs_version = true};
  std::string collection = collection_of(kind);
  kinds_.insert_or_assign(std::move(collection), std::move(kind));
}

std::string ApiServer::next_uid() {
  return fmt::format("{:08x}-0000-4000-8000-{:012x}", seed_ & 0xffffffffU, ++uid_count_);
}

}  // namespace hangar::simulation
