#include "simulation/statuses.h"

#include "json/value.h"
#include "simulation/api_server.h"
#include "simulation/field_ownership.h"

#include <fmt/format.h>

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::simulation {

namespace {

std::string qualified(const Named& named) {
  return named.group.empty() ? named.plural : named.plural + "." + named.group;
}

json::Object details_of(const Named& named) {
  json::Object details;
  if (!named.name.empty()) details["name"] = named.name;
  if (!named.group.empty()) details["group"] = named.group;
  details["kind"] = named.plural;
  return details;
}

json::Object status_document(std::string_view status) {
  return {{"kind", "Status"},
          {"apiVersion", "v1"},
          {"metadata", json::Object{}},
          {"status", json::String(status)}};
}

}  // namespace

ApiAnswer status(int code, std::string_view reason, std::string message, json::Object details) {
  json::Object body = status_document("Failure");
  body["message"] = std::move(message);
  body["reason"] = reason;
  if (!details.empty()) body["details"] = std::move(details);
  body["code"] = code;
  return {.status = code, .body = std::move(body)};
}

ApiAnswer not_served() {
  return status(404, "NotFound", "the server could not find the requested resource");
}

ApiAnswer method_not_allowed() {
  return status(405, "MethodNotAllowed",
                "the server does not allow this method on the requested resource");
}

ApiAnswer bad_request(std::string message) {
  return status(400, "BadRequest", std::move(message));
}

ApiAnswer not_found(const Named& named) {
  return status(404, "NotFound", fmt::format("{} \"{}\" not found", qualified(named), named.name),
                details_of(named));
}

ApiAnswer already_exists(const Named& named) {
  return status(409, "AlreadyExists",
                fmt::format("{} \"{}\" already exists", qualified(named), named.name),
                details_of(named));
}

ApiAnswer being_deleted(const Named& named) {
  return status(409, "AlreadyExists",
                fmt::format("object is being deleted: {} \"{}\" already exists", qualified(named),
                            named.name),
                details_of(named));
}

ApiAnswer conflict(const Named& named, std::string_view why) {
  return status(409, "Conflict",
                fmt::format("Operation cannot be fulfilled on {} \"{}\": {}", qualified(named),
                            named.name, why),
                details_of(named));
}

ApiAnswer apply_conflict(const std::map<FieldManager, FieldSet>& conflicts) {
  json::Array causes;
  for (const auto& [manager, fields] : conflicts) {
    for (const FieldPath& field : fields) {
      causes.emplace_back(
          json::Object{{"reason", "FieldManagerConflict"},
                       {"message", fmt::format("conflict with \"{}\"", manager.name)},
                       {"field", shown(field)}});
    }
  }
  const std::size_t count = causes.size();
  return status(409, "Conflict",
                fmt::format("Apply failed with {} conflict{}", count, count == 1 ? "" : "s"),
                {{"causes", std::move(causes)}});
}

ApiAnswer invalid(std::string_view group, std::string_view kind, std::string_view name,
                  std::string_view field, std::string_view reason, std::string_view why) {
  const std::string shown_kind =
      group.empty() ? std::string(kind) : fmt::format("{}.{}", kind, group);
  json::Object details{{"name", json::String(name)}, {"kind", json::String(kind)}};
  if (!group.empty()) details["group"] = group;
  details["causes"] = json::Array{json::Object{{"reason", json::String(reason)},
                                               {"message", json::String(why)},
                                               {"field", json::String(field)}}};
  return status(422, "Invalid",
                fmt::format("{} \"{}\" is invalid: {}: {}", shown_kind, name, field, why),
                std::move(details));
}

ApiAnswer expired(std::string message) {
  return status(410, "Expired", std::move(message));
}

ApiAnswer forbidden(const Attempt& attempt, const Named& named, std::string_view namespace_) {
  const std::string who = named.name.empty()
                              ? qualified(named)
                              : fmt::format("{} \"{}\"", qualified(named), named.name);
  return status(
      403, "Forbidden",
      fmt::format("{} is forbidden: User \"{}\" cannot {} resource \"{}\" in API group \"{}\" {}",
                  who, attempt.user, attempt.verb,
                  attempt.resource.empty() ? named.plural : attempt.resource, named.group,
                  namespace_.empty() ? "at the cluster scope"
                                     : fmt::format("in the namespace \"{}\"", namespace_)),
      details_of(named));
}

json::Value deleted(const Named& named, std::string_view uid) {
  json::Object body = status_document("Success");
  json::Object details = details_of(named);
  details["uid"] = uid;
  body["details"] = std::move(details);
  return body;
}

}  // namespace hangar::simulation
