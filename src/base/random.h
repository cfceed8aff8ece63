// Random bytes that nobody can predict, from the kernel: for keys and tokens, and for seeds that
// must not be guessed. Jitter and tests use <random>, whose sequences can be repeated.
//
// Any thread. These functions do not fail: on the kernels that hangar runs on, getrandom() exists
// and blocks only while the machine boots.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace hangar {

// 256 bits: as long as the keys that OpenSSL and the HMAC of base/digest.h work with.
using RandomKey = std::array<std::uint8_t, 32>;

void fill_random(std::span<std::byte> bytes);

[[nodiscard]] RandomKey random_key();
[[nodiscard]] std::uint64_t random_number();

}  // namespace hangar
