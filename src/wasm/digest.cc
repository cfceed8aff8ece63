#include "wasm/digest.h"

#include "base/assert.h"
#include "base/result.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

namespace hangar::wasm {

Digest Digest::of(std::span<const std::byte> bytes) {
  Digest digest;
  const int ok =
      EVP_Digest(bytes.data(), bytes.size(), digest.bytes_.data(), nullptr, EVP_sha256(), nullptr);
  HANGAR_ASSERT(ok == 1, "sha256 of a buffer only fails without memory");
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
  std::string text;
  text.reserve(2 * bytes_.size());
  for (const std::uint8_t byte : bytes_)
    fmt::format_to(std::back_inserter(text), "{:02x}", byte);
  return text;
}

}  // namespace hangar::wasm
