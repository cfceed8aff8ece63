#include "base/packing.h"

#include "base/assert.h"
#include "base/varint.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace hangar {

void Packer::put_number(std::uint64_t value) {
  append_varint(bytes_, value);
}

void Packer::put_text(std::string_view value) {
  put_number(value.size());
  bytes_ += value;
}

std::uint64_t Unpacker::get_number() {
  const std::optional<std::uint64_t> value = take_varint(rest_);
  HANGAR_ASSERT(value, "it was packed");
  return *value;
}

std::string_view Unpacker::get_text() {
  const std::uint64_t size = get_number();
  HANGAR_ASSERT(size <= rest_.size(), "it was packed");
  const std::string_view value = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return value;
}

}  // namespace hangar
