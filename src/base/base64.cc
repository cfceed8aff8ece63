#include "base/base64.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hangar {

namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint32_t kLowSix = 0x3f;

int value_of(char letter) {
  if (letter >= 'A' && letter <= 'Z') return letter - 'A';
  if (letter >= 'a' && letter <= 'z') return letter - 'a' + 26;
  if (letter >= '0' && letter <= '9') return letter - '0' + 52;
  if (letter == '+') return 62;
  if (letter == '/') return 63;
  return -1;
}

}  // namespace

std::string base64_encode(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::string_view group = bytes.substr(at, 3);
    std::uint32_t bits = 0;
    for (std::size_t index = 0; index < 3; ++index) {
      bits = bits << 8U | (index < group.size() ? static_cast<unsigned char>(group[index]) : 0U);
    }
    for (std::size_t index = 0; index < 4; ++index) {
      text += index <= group.size() ? kAlphabet[bits >> (18 - 6 * index) & kLowSix] : '=';
    }
  }
  return text;
}

std::optional<std::string> base64_decode(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  std::uint32_t bits = 0;
  int count = 0;    // Letters of the current group of four.
  int padding = 0;  // How many of them are '='.
  for (const char letter : text) {
    if (letter == ' ' || letter == '\n' || letter == '\r' || letter == '\t') continue;
    const int value = letter == '=' ? 0 : value_of(letter);
    if (value < 0 || (letter != '=' && padding > 0) || (letter == '=' && count < 2)) {
      return std::nullopt;
    }
    if (letter == '=') ++padding;
    bits = bits << 6U | static_cast<std::uint32_t>(value);
    if (++count < 4) continue;
    for (int index = 0; index < 3 - padding; ++index) {
      bytes += static_cast<char>(bits >> (16 - 8 * index) & 0xffU);
    }
    bits = 0;
    count = 0;
    padding = 0;
  }
  if (count != 0) return std::nullopt;
  return bytes;
}

}  // namespace hangar
