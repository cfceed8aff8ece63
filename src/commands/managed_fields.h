// Who wrote an object last, and who a field of it, as its managedFields say.
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
  std::string subresource;  // "status"; mostly empty.
  std::optional<WallTime> time;
  json::Value fields;  // FieldsV1.
};

struct CurrentObject {
  std::uint64_t version = 0;
  std::vector<FieldManager> managers;
};
[[nodiscard]] CurrentObject current_object(const json::Value& manifest);

// Those that wrote last: times are of whole seconds, so there may be several. Not later than
// `until`, where that is given. As with the next ones, valid as long as the object is.
[[nodiscard]] std::vector<const FieldManager*> last_managers(
    const CurrentObject& object, std::optional<WallTime> until = std::nullopt);

// The members that ".spec.template" names; a dot within a name is written "\.". InvalidInput.
[[nodiscard]] Result<std::vector<std::string>> parse_field(std::string_view text);
// Of those who own the field or a part of it, those that wrote last.
[[nodiscard]] std::vector<const FieldManager*> managers_of(const CurrentObject& object,
                                                           const std::vector<std::string>& field);

}  // namespace hangar::commands
