#include "recorder/json_numbers.h"

#include "base/time.h"
#include "json/value.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string_view>

namespace hangar::recorder {

std::int64_t microseconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
}

Duration duration_at(const json::Value& value, std::string_view member) {
  constexpr std::chrono::hours kMost{24 * 365};
  const std::chrono::microseconds given(json::int_at(value, {member}));
  return std::clamp<std::chrono::microseconds>(given, std::chrono::microseconds(0), kMost);
}

std::uint64_t number_at(const json::Value& value, std::string_view member) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(json::int_at(value, {member}), 0));
}

}  // namespace hangar::recorder
