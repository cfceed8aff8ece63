#include "base/varint.h"

#include <cstddef>

namespace hangar {

std::optional<std::uint64_t> take_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    const unsigned shift = 7 * static_cast<unsigned>(at);
    const auto byte = static_cast<std::uint8_t>(bytes[at]);
    // The tenth byte has room for one bit; a zero byte at the end is unnecessary.
    if (shift > 63 || (shift == 63 && byte > 1) || (byte == 0 && at > 0)) return std::nullopt;
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if ((byte & 0x80U) == 0) {
      bytes.remove_prefix(at + 1);
      return value;
    }
  }
  return std::nullopt;
}

}  // namespace hangar
