// Numbers and durations as JSON about records has them. What others may have written is cut to what
// can be.
#pragma once

#include "base/time.h"
#include "json/value.h"

#include <cstdint>
#include <string_view>

namespace hangar::recorder {

[[nodiscard]] std::int64_t microseconds(Duration duration);
// From zero to a year.
[[nodiscard]] Duration duration_at(const json::Value& value, std::string_view member);
// Zero for what is none, or is negative.
[[nodiscard]] std::uint64_t number_at(const json::Value& value, std::string_view member);

}  // namespace hangar::recorder
