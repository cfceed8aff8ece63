// Signs and verifies modules. A signature is over the SHA-256 of the module without the section
// that contains the signature, its first `yoke.schematics:signature`. The contents of that section
// are JSON, {"Fingerprint", "Signature"}.
//
// Modules that yoke has signed verify here, and the other way round.
#pragma once

#include "base/result.h"
#include "schematics/keys.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace hangar::schematics {

// Enough for a fingerprint and a signature by RSA with 16384 bits.
inline constexpr std::size_t kSignatureBytesMax = 16384;

enum class Signed : std::uint8_t {
  Refuse,   // Refuse to sign a module that is signed already.
  Replace,  // Replace its signature.
};

// InvalidInput when it is not a module, or is signed already. Any thread; hashing takes a
// millisecond per two megabytes.
[[nodiscard]] Result<std::string> sign_module(std::span<const std::byte> module,
                                              const PrivateKey& key, Signed is_signed);

// Denied when it is unsigned, signed by none of the keys, or the signature is for other
// bytes. InvalidInput when it is not a module, or its signature section is damaged. Threads
// as for sign_module.
[[nodiscard]] Result<> verify_module(std::span<const std::byte> module, const PublicKeys& keys);

}  // namespace hangar::schematics
