// Answers of the API server that are a metav1.Status, worded as the real ones.
#pragma once

#include "json/value.h"
#include "simulation/api_server.h"
#include "simulation/field_ownership.h"

#include <map>
#include <string>
#include <string_view>

namespace hangar::simulation {

// The object that an answer is about.
struct Named {
  std::string group = {};
  std::string plural;
  std::string name = {};
};

[[nodiscard]] ApiAnswer status(int code, std::string_view reason, std::string message,
                               json::Object details = {});
[[nodiscard]] ApiAnswer not_served();
[[nodiscard]] ApiAnswer method_not_allowed();
[[nodiscard]] ApiAnswer bad_request(std::string message);
[[nodiscard]] ApiAnswer not_found(const Named& named);
[[nodiscard]] ApiAnswer already_exists(const Named& named);
[[nodiscard]] ApiAnswer being_deleted(const Named& named);
[[nodiscard]] ApiAnswer conflict(const Named& named, std::string_view why);
[[nodiscard]] ApiAnswer apply_conflict(const std::map<FieldManager, FieldSet>& conflicts);
[[nodiscard]] ApiAnswer invalid(std::string_view group, std::string_view kind,
                                std::string_view name, std::string_view field,
                                std::string_view reason, std::string_view why);
[[nodiscard]] ApiAnswer expired(std::string message);
struct Attempt {
  std::string user;
  std::string verb;
  std::string resource = {};  // With its subresource; empty: as named.
};
[[nodiscard]] ApiAnswer forbidden(const Attempt& attempt, const Named& named,
                                  std::string_view namespace_);
// The body of a successful deletion.
[[nodiscard]] json::Value deleted(const Named& named, std::string_view uid);

}  // namespace hangar::simulation
