// The identity of a module: the sha256 of its uncompressed bytes.
#pragma once

#include "base/result.h"

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace hangar::wasm {

class Digest {
 public:
  // Computes the digest. Blocking: about a millisecond per two megabytes.
  [[nodiscard]] static Digest of(std::span<const std::byte> bytes);
  [[nodiscard]] static Digest of(std::string_view bytes) {
    return of(std::as_bytes(std::span(bytes)));
  }

  // The digest whose bytes() these are, 32 of them.
  [[nodiscard]] static Digest of_bytes(std::string_view bytes);
  // Parses 64 hexadecimal digits; InvalidInput for anything else.
  [[nodiscard]] static Result<Digest> from_hex(std::string_view text);
  [[nodiscard]] std::string to_hex() const;
  [[nodiscard]] std::span<const std::byte, 32> bytes() const {
    return std::as_bytes(std::span(bytes_));
  }

  friend auto operator<=>(const Digest&, const Digest&) = default;

 private:
  std::array<std::uint8_t, 32> bytes_{};
};

}  // namespace hangar::wasm
