// The last writers of an object and of its fields, according to its managedFields.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "json/value.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::commands {

struct FieldManager {
  std::string name;
  std::string operation;    // "Apply", "Update".
  std::string subresource;  // "status"; usually empty.
  std::optional<WallTime> time;
  json::Value fields;  // FieldsV1.
};

struct CurrentObject {
  std::uint64_t version = 0;
  std::vector<FieldManager> managers;
};
[[nodiscard]] CurrentObject current_object(const json::Value& manifest);

// The managers that wrote last, but not after `until`. There may be several, since times have a
// resolution of one second. Like those of managers_of(), the pointers are valid as long as the
// object.
[[nodiscard]] std::vector<const FieldManager*> last_managers(
    const CurrentObject& object, std::optional<WallTime> until = std::nullopt);

// One step of a path to a field.
struct FieldStep {
  using Keys = std::vector<std::pair<std::string, std::string>>;
  struct Plain {
    std::string value;
  };
  // A member; an item of a list by its place, by members of it, or by its value.
  std::variant<std::string, std::size_t, Keys, Plain> what;
  std::string text;  // As it was written: ".spec", "[0]", "[name=web]", "[=a]".
};
// A path such as ".spec.containers[name=web].image"; a dot or bracket within a name is written with
// a "\" before it. InvalidInput.
[[nodiscard]] Result<std::vector<FieldStep>> parse_field(std::string_view text);

// A path in one object: members, and items of lists as they are.
struct FieldItem {
  json::Value value;
};
using FieldPath = std::vector<std::variant<std::string, FieldItem>>;
// InvalidInput for items that the object does not have, and for members of a list.
[[nodiscard]] Result<FieldPath> find_field(const json::Value& manifest,
                                           const std::vector<FieldStep>& steps);

// Among the managers that own the field or a part of it, those that wrote last.
[[nodiscard]] std::vector<const FieldManager*> managers_of(const CurrentObject& object,
                                                           const FieldPath& field);

}  // namespace hangar::commands
