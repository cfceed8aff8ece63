#include "kube/internal/base64.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hangar::kube::internal {

namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t index = 0; index < bytes.size(); index += 3) {
    const std::string_view group = bytes.substr(index, 3);
    std::uint32_t bits = 0;
    for (std::size_t byte = 0; byte < 3; ++byte) {
      bits = bits << 8 | (byte < group.size() ? static_cast<unsigned char>(group[byte]) : 0U);
    }
    for (std::size_t digit = 0; digit < 4; ++digit) {
      text += digit <= group.size() ? kAlphabet[bits >> (18 - 6 * digit) & 63U] : '=';
    }
  }
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  std::uint32_t bits = 0;
  std::size_t digits = 0;
  std::size_t padding = 0;
  for (const char character : text) {
    if (character == '\n' || character == '\r') continue;
    if (character == '=') {
      ++padding;
      continue;
    }
    const std::size_t digit = kAlphabet.find(character);
    if (digit == std::string_view::npos || padding > 0) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    if (++digits % 4 != 0) continue;
    for (const int shift : {16, 8, 0})
      bytes += static_cast<char>(bits >> shift & 0xFFU);
    bits = 0;
  }
  const std::size_t left = digits % 4;
  if (left == 1 || padding != (left == 0 ? 0 : 4 - left)) return std::nullopt;
  if (left >= 2) bytes += static_cast<char>(bits >> (left == 2 ? 4 : 10) & 0xFFU);
  if (left == 3) bytes += static_cast<char>(bits >> 2 & 0xFFU);
  return bytes;
}

}  // namespace hangar::kube::internal
