#include "base/text.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace hangar {

std::string to_lower(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](char letter) { return to_lower(letter); });
  return lower;
}

bool equals_ignoring_case(std::string_view left, std::string_view right) {
  return std::ranges::equal(left, right,
                            [](char one, char other) { return to_lower(one) == to_lower(other); });
}

bool has_control_character(std::string_view text) {
  return std::ranges::any_of(text, [](char character) {
    const auto byte = static_cast<unsigned char>(character);
    return byte < 0x20 || byte == 0x7f;
  });
}

}  // namespace hangar
