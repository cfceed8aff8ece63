#include "base/packing.h"

#include "base/assert.h"

#include <cstddef>

namespace hangar {

// Seven bits a byte, the lowest first; all but the last byte have the eighth.
void Packer::put_number(std::uint64_t value) {
  while (value >= 0x80U) {
    bytes_ += static_cast<char>((value & 0x7fU) | 0x80U);
    value >>= 7U;
  }
  bytes_ += static_cast<char>(value);
}

void Packer::put_text(std::string_view value) {
  put_number(value.size());
  bytes_ += value;
}

std::uint64_t Unpacker::get_number() {
  std::uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    HANGAR_ASSERT(!rest_.empty() && shift < 64, "it was packed");
    const auto byte = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if ((byte & 0x80U) == 0) return value;
  }
}

std::string_view Unpacker::get_text() {
  const std::uint64_t size = get_number();
  HANGAR_ASSERT(size <= rest_.size(), "it was packed");
  const std::string_view value = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return value;
}

}  // namespace hangar
