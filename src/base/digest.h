// Digests and their hexadecimal form: the only place in this project that calls OpenSSL for them.
//
// Any thread. SHA-256 takes about a millisecond per two megabytes: large inputs belong on a worker.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace hangar {

using Sha256Bytes = std::array<std::uint8_t, 32>;

// SHA-256 of bytes that arrive in pieces.
class Sha256 {
 public:
  Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  ~Sha256();

  void add(std::string_view bytes);
  // Call once; nothing can be added afterwards.
  [[nodiscard]] Sha256Bytes finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

[[nodiscard]] Sha256Bytes sha256(std::string_view bytes);
// Over the pieces, concatenated.
[[nodiscard]] Sha256Bytes hmac_sha256(std::string_view key,
                                      std::initializer_list<std::string_view> pieces);

// Takes the same time wherever the two differ, so that a forger learns nothing from it.
[[nodiscard]] bool is_same_in_constant_time(std::string_view left, std::string_view right);

// Lower-case.
[[nodiscard]] std::string to_hex(std::span<const std::uint8_t> bytes);
[[nodiscard]] std::string sha256_hex(std::string_view bytes);
// Only where a published format requires SHA-1; it protects nothing.
[[nodiscard]] std::string sha1_hex(std::string_view bytes);
// True for exactly 64 lower-case hexadecimal digits.
[[nodiscard]] bool is_sha256_hex(std::string_view text);

}  // namespace hangar
