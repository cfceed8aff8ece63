// Text of ASCII, as protocols compare it and terminals take it, whatever the locale says.
#pragma once

#include <string>
#include <string_view>

namespace hangar {

[[nodiscard]] constexpr char to_lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}
[[nodiscard]] std::string to_lower(std::string_view text);
[[nodiscard]] bool equals_ignoring_case(std::string_view left, std::string_view right);

// A byte below 0x20, or 0x7f: such text would end a line of HTTP or move a terminal's cursor.
[[nodiscard]] bool has_control_character(std::string_view text);

// For terminals, of what strangers choose: all but printable ASCII is escaped, as "\x1b". Of a text
// that it has made it changes nothing.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace hangar
