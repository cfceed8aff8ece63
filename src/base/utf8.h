// Checks whether bytes from elsewhere are text.
#pragma once

#include <cstddef>
#include <string_view>

namespace hangar {

// How many bytes at the beginning of `bytes` are valid UTF-8 (no surrogates, no overlong forms):
// bytes.size() when all are.
[[nodiscard]] std::size_t valid_utf8_prefix(std::string_view bytes);

}  // namespace hangar
