// ASCII text, as protocols compare it and terminals display it, independent of the locale.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace hangar {

[[nodiscard]] constexpr char to_lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}
[[nodiscard]] std::string to_lower(std::string_view text);
[[nodiscard]] bool equals_ignoring_case(std::string_view left, std::string_view right);

// True for text with a byte below 0x20 or with 0x7f: it would end a line of HTTP or move a
// terminal's cursor.
[[nodiscard]] bool has_control_character(std::string_view text);

// Text chosen by strangers, made safe for a terminal: everything but printable ASCII is escaped, as
// "\x1b". Applying it twice changes nothing more.
[[nodiscard]] std::string printable(std::string_view text);
// The same in at most `bytes_max` bytes; "..." follows if that is not all of it.
[[nodiscard]] std::string printable(std::string_view text, std::size_t bytes_max);

// The hash of a container with strings as keys that is searched by views, without a copy.
struct TextHash {
  using is_transparent = void;
  [[nodiscard]] std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>()(text);
  }
};

}  // namespace hangar
