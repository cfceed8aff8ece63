// Numbers written as text, read independently of the locale.
#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string_view>
#include <system_error>

namespace hangar {

// The number that all of `text` is. std::nullopt for other text, such as an empty one, " 1", "+1"
// and "1x", and for a number that does not fit into `Number`. A "-" is read only if `Number` has a
// sign.
template <std::integral Number>
[[nodiscard]] std::optional<Number> parse_number(std::string_view text) {
  Number number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest != end) return std::nullopt;
  return number;
}

}  // namespace hangar
