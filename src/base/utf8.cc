#include "base/utf8.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hangar {

namespace {

bool is_continuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

// The size of the sequence at the beginning of `bytes` (not empty), or zero when there is none.
std::size_t sequence_size(std::string_view bytes) {
  const auto byte_at = [bytes](std::size_t index) {
    return static_cast<std::uint8_t>(bytes[index]);
  };
  const std::uint8_t lead = byte_at(0);
  if (lead < 0x80) return 1;
  // The range of the second byte excludes overlong forms, surrogates and code points past U+10FFFF.
  std::uint8_t low = 0x80;
  std::uint8_t high = 0xbf;
  std::size_t size = 0;
  if (lead >= 0xc2 && lead <= 0xdf) {
    size = 2;
  } else if (lead >= 0xe0 && lead <= 0xef) {
    size = 3;
    if (lead == 0xe0) low = 0xa0;
    if (lead == 0xed) high = 0x9f;
  } else if (lead >= 0xf0 && lead <= 0xf4) {
    size = 4;
    if (lead == 0xf0) low = 0x90;
    if (lead == 0xf4) high = 0x8f;
  }
  if (size == 0 || bytes.size() < size || byte_at(1) < low || byte_at(1) > high) return 0;
  for (std::size_t index = 2; index < size; ++index) {
    if (!is_continuation(bytes[index])) return 0;
  }
  return size;
}

}  // namespace

std::size_t valid_utf8_prefix(std::string_view bytes) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    const std::size_t size = sequence_size(bytes.substr(at));
    if (size == 0) break;
    at += size;
  }
  return at;
}

std::string_view utf8_beginning(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  std::size_t end = bytes_max;
  while (end > 0 && is_continuation(text[end]))
    --end;
  return text.substr(0, end);
}

std::string_view utf8_end(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  text.remove_prefix(text.size() - bytes_max);
  while (!text.empty() && is_continuation(text.front()))
    text.remove_prefix(1);
  return text;
}

}  // namespace hangar
