// Reads a manifest member by member; errors name the field by its whole path ("spec.limits.memory:
// must be a string"). A member that is missing or null has the zero value, as in Go.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "json/value.h"

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::json {

// How the names of members are compared.
enum class Names : std::uint8_t {
  Exact,
  AnyCase,  // As Go's encoding/json does: the last member counts.
};

// A view of one object; the object must outlive it. All errors are InvalidInput.
class Fields {
 public:
  Fields(const Object& object, std::string path, Names names = Names::Exact)
      : object_(&object), path_(std::move(path)), names_(names) {}

  // An error for the first member that has another name than these.
  [[nodiscard]] Result<> check_only(std::initializer_list<std::string_view> keys) const;

  // The whole path of a member: "spec.limits.memory".
  [[nodiscard]] std::string name(std::string_view key) const;
  [[nodiscard]] bool has(std::string_view key) const { return find(key) != nullptr; }

  [[nodiscard]] Result<std::string> text(std::string_view key) const;
  [[nodiscard]] Result<std::string> required_text(std::string_view key) const;
  [[nodiscard]] Result<bool> flag(std::string_view key) const;
  [[nodiscard]] Result<std::int64_t> integer(std::string_view key) const;
  // A duration as Go writes it: "1m30s".
  [[nodiscard]] Result<Duration> duration(std::string_view key) const;
  [[nodiscard]] Result<std::vector<std::string>> texts(std::string_view key) const;
  // Null when the member is missing.
  [[nodiscard]] Result<const Object*> object(std::string_view key) const;
  [[nodiscard]] Result<Fields> required_object(std::string_view key) const;
  // The elements of a list of objects, each with its index in its path: "spec.env[2]".
  [[nodiscard]] Result<std::vector<Fields>> objects(std::string_view key) const;

  // The error "spec.sleep.policy: must be Idle or Never", for the caller to return.
  [[nodiscard]] std::unexpected<Error> wrong(std::string_view key, std::string_view wanted) const;

 private:
  [[nodiscard]] const Value* find(std::string_view key) const;

  const Object* object_;
  std::string path_;
  Names names_;
};

}  // namespace hangar::json
