#include "wasm/digest.h"

#include "base/assert.h"
#include "base/digest.h"
#include "base/result.h"

#include <charconv>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

namespace hangar::wasm {

Digest Digest::of(std::span<const std::byte> bytes) {
  Digest digest;
  digest.bytes_ = sha256({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  return digest;
}

Digest Digest::of_bytes(std::string_view bytes) {
  Digest digest;
  HANGAR_ASSERT(bytes.size() == digest.bytes_.size(), "a sha256 has 32 bytes");
  std::memcpy(digest.bytes_.data(), bytes.data(), bytes.size());
  return digest;
}

Result<Digest> Digest::from_hex(std::string_view text) {
  Digest digest;
  bool is_good = text.size() == 2 * digest.bytes_.size();
  for (std::size_t index = 0; is_good && index < digest.bytes_.size(); ++index) {
    const char* const first = text.data() + 2 * index;
    const auto [end, error] = std::from_chars(first, first + 2, digest.bytes_[index], 16);
    is_good = error == std::errc() && end == first + 2;
  }
  if (!is_good) return fail(ErrorKind::InvalidInput, "a sha256 has 64 hexadecimal digits");
  return digest;
}

std::string Digest::to_hex() const {
  return hangar::to_hex(bytes_);
}

}  // namespace hangar::wasm
