// Variable-length numbers: seven bits a byte, lowest first; every byte but the last has its eighth
// bit set.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hangar {

inline void append_varint(std::string& bytes, std::uint64_t value) {
  while (value >= 0x80U) {
    bytes += static_cast<char>((value & 0x7fU) | 0x80U);
    value >>= 7U;
  }
  bytes += static_cast<char>(value);
}

// Takes one number from the front. Returns std::nullopt, and leaves the bytes unchanged, when they
// do not begin with a complete number, or when the number is longer than necessary or has more than
// 64 bits.
[[nodiscard]] std::optional<std::uint64_t> take_varint(std::string_view& bytes);

}  // namespace hangar
