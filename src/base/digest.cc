#include "base/digest.h"

// Calls the functions of each algorithm and not EVP: EVP loads a provider with all algorithms, also
// into hangar-node, which must stay small.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace hangar {

struct Sha256::State {
  SHA256_CTX context;
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  SHA256_Init(&state_->context);
}
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;
Sha256::~Sha256() = default;

void Sha256::add(std::string_view bytes) {
  SHA256_Update(&state_->context, bytes.data(), bytes.size());
}

Sha256Bytes Sha256::finish() {
  Sha256Bytes digest{};
  SHA256_Final(digest.data(), &state_->context);
  return digest;
}

Sha256Bytes sha256(std::string_view bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.finish();
}

bool is_same_in_constant_time(std::string_view left, std::string_view right) {
  return left.size() == right.size() && CRYPTO_memcmp(left.data(), right.data(), left.size()) == 0;
}

std::string to_hex(std::span<const std::uint8_t> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::uint8_t byte : bytes) {
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 15U];
  }
  return text;
}

std::string sha256_hex(std::string_view bytes) {
  return to_hex(sha256(bytes));
}

std::string sha1_hex(std::string_view bytes) {
  SHA_CTX context;
  std::array<std::uint8_t, SHA_DIGEST_LENGTH> digest{};
  SHA1_Init(&context);
  SHA1_Update(&context, bytes.data(), bytes.size());
  SHA1_Final(digest.data(), &context);
  return to_hex(digest);
}

bool is_sha256_hex(std::string_view text) {
  return text.size() == std::size_t{2} * SHA256_DIGEST_LENGTH &&
         std::ranges::all_of(text, [](char letter) {
           return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'f');
         });
}

}  // namespace hangar
