// The last writers of an object and of its fields, according to its managedFields.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "json/value.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
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

// The members of a path such as ".spec.template"; a dot within a name is written "\.".
// InvalidInput.
[[nodiscard]] Result<std::vector<std::string>> parse_field(std::string_view text);
// Among the managers that own the field or a part of it, those that wrote last.
[[nodiscard]] std::vector<const FieldManager*> managers_of(const CurrentObject& object,
                                                           const std::vector<std::string>& field);

}  // namespace hangar::commands
