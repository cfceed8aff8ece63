#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
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

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char letter : text) {
    if (letter >= 0x20 && letter < 0x7f) {
      out += letter;
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(letter));
    }
  }
  return out;
}

std::string printable(std::string_view text, std::size_t bytes_max) {
  std::string out = printable(text.substr(0, bytes_max));
  if (text.size() <= bytes_max && out.size() <= bytes_max) return out;
  return out.substr(0, bytes_max) + "...";
}

}  // namespace hangar
