// Numbers and durations in the JSON of records. Values out of range are clamped, since the JSON may
// not be hangar's.
#pragma once

#include "base/time.h"
#include "json/value.h"

#include <cstdint>
#include <string_view>

namespace hangar::recorder {

[[nodiscard]] std::int64_t microseconds(Duration duration);
// Clamped to the range from zero to a year.
[[nodiscard]] Duration duration_at(const json::Value& value, std::string_view member);
// Zero if the member is not a number, or is negative.
[[nodiscard]] std::uint64_t number_at(const json::Value& value, std::string_view member);

}  // namespace hangar::recorder
