// Text that somebody may choose to mislead the reader of a terminal or a page. For tests.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace hangar::commands {

// 4096 bytes of markup, commands to a terminal, an override of the writing direction (U+202E) and
// letters that are written from right to left; it ends within a character.
inline std::string hostile_text() {
  constexpr std::size_t kBytes = 4096;
  constexpr std::string_view kPart =
      "<script>\x1b[2J\x1b]0;t\x07\r\n\xe2\x80\xae\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d";
  std::string text;
  while (text.size() < kBytes)
    text += kPart;
  text.resize(kBytes);
  return text;
}

// Whether a terminal shows nothing but the characters of these lines.
inline bool is_plain(std::string_view lines) {
  return std::ranges::all_of(
      lines, [](char letter) { return letter == '\n' || (letter >= ' ' && letter <= '~'); });
}

}  // namespace hangar::commands
