// Signatures of modules: over the SHA-256 of a module without the section that the signature is
// in, its first `yoke.schematics:signature`. Its contents are JSON, {"Fingerprint", "Signature"}.
//
// What yoke has signed verifies here, and the other way round.
#pragma once

#include "base/result.h"
#include "schematics/keys.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace hangar::schematics {

// That of a fingerprint and a signature by RSA with 16384 bits, and room.
inline constexpr std::size_t kSignatureBytesMax = 16384;

enum class Signed : std::uint8_t {
  Refuse,   // A module that is signed.
  Replace,  // Its signature.
};

// InvalidInput: it is not a module, or signed already. Any thread; hashing takes a millisecond per
// two megabytes.
[[nodiscard]] Result<std::string> sign_module(std::span<const std::byte> module,
                                              const PrivateKey& key, Signed is_signed);

// Denied: it is unsigned, signed by none of the keys, or the signature is of other bytes.
// InvalidInput: it is not a module, or what should be its signature is none. As sign_module.
[[nodiscard]] Result<> verify_module(std::span<const std::byte> module, const PublicKeys& keys);

}  // namespace hangar::schematics
