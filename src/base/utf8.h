// Checks whether foreign bytes are UTF-8 text, and cuts texts between characters.
#pragma once

#include <cstddef>
#include <string_view>

namespace hangar {

// How many bytes at the beginning of `bytes` are valid UTF-8 (no surrogates, no overlong forms):
// bytes.size() when all are.
[[nodiscard]] std::size_t valid_utf8_prefix(std::string_view bytes);

// The beginning, or the end, of `text`: at most `bytes_max` bytes, not cut within a character. Both
// accept any bytes; for valid UTF-8 they return valid UTF-8.
[[nodiscard]] std::string_view utf8_beginning(std::string_view text, std::size_t bytes_max);
[[nodiscard]] std::string_view utf8_end(std::string_view text, std::size_t bytes_max);

}  // namespace hangar
