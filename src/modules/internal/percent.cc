#include "modules/internal/percent.h"

#include "base/text.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace hangar::modules::internal {

namespace {

int hex_digit(char letter) {
  if (letter >= '0' && letter <= '9') return letter - '0';
  const char lower = to_lower(letter);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

}  // namespace

std::optional<std::string> percent_decode(std::string_view text, std::string_view refused) {
  std::string decoded;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      decoded += text[at];
      continue;
    }
    if (at + 2 >= text.size()) return std::nullopt;
    const int high = hex_digit(text[at + 1]);
    const int low = hex_digit(text[at + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    const char letter = static_cast<char>((high << 4) | low);
    if (refused.contains(letter)) return std::nullopt;
    decoded += letter;
    at += 2;
  }
  return decoded;
}

std::optional<std::string> plain_path(std::string_view path) {
  constexpr std::string_view kNeverEscaped("/%\0", 3);
  std::optional<std::string> decoded = percent_decode(path, kNeverEscaped);
  if (!decoded || decoded->contains('\\')) return std::nullopt;
  std::string_view rest = *decoded;
  while (!rest.empty()) {
    rest.remove_prefix(1);  // Its slash.
    const std::string_view segment = rest.substr(0, rest.find('/'));
    if (segment == "." || segment == ".." || (segment.empty() && !rest.empty())) {
      return std::nullopt;
    }
    rest.remove_prefix(segment.size());
  }
  return decoded;
}

}  // namespace hangar::modules::internal
