#include "modules/internal/sha256.h"

#include "base/assert.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace hangar::modules {

std::string sha256_hex(std::string_view bytes) {
  std::array<unsigned char, 32> digest{};
  const int ok =
      EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, EVP_sha256(), nullptr);
  HANGAR_ASSERT(ok == 1, "OpenSSL has SHA-256");
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * digest.size());
  for (const unsigned char byte : digest) {
    hex += kDigits[byte >> 4U];
    hex += kDigits[byte & 15U];
  }
  return hex;
}

bool is_sha256_hex(std::string_view text) {
  constexpr std::size_t kDigitCount = 64;
  return text.size() == kDigitCount && std::ranges::all_of(text, [](char letter) {
           return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'f');
         });
}

}  // namespace hangar::modules
