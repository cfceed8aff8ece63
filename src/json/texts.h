// Lists of texts in documents.
#pragma once

#include "json/value.h"

#include <set>
#include <string>

namespace hangar::json {

// The texts of the array at `path`; none when there is no array.
[[nodiscard]] std::set<std::string> texts_at(const Value& value, Path path);

}  // namespace hangar::json
