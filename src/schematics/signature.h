// Signs and verifies modules, and native code that was compiled from them.
//
// A signature of a module is over the SHA-256 of the module without the section
// that contains the signature, its first `yoke.schematics:signature`. The contents of that section
// are JSON, {"Fingerprint", "Signature"}.
//
// Modules that yoke has signed verify here, and the other way round.
//
// A signature of native code is over the SHA-256 of a text with the fields of CodeStatement
// (docs/formats/native-code.md). No module begins like that text, so a signature of a module is
// never one of native code.
#pragma once

#include "base/result.h"
#include "schematics/keys.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

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

// What native code was made from, and for which engine and processor (wasm::CodeTarget).
struct CodeStatement {
  std::string module_sha256;  // 64 hexadecimal digits.
  std::string engine;
  std::string processor;
  std::string code_sha256;  // 64 hexadecimal digits.
};

// The contents of the file beside the code: JSON with the statement, "Fingerprint" and "Signature".
[[nodiscard]] Result<std::string> sign_code(const CodeStatement& statement, const PrivateKey& key);

// The fingerprint of the key that has signed that statement, if it is one of the keys; only the
// signature is read of `file`. Denied when it has none. InvalidInput when it is damaged. Any
// thread.
[[nodiscard]] Result<std::string> verify_code(std::string_view file, const CodeStatement& statement,
                                              const PublicKeys& keys);

}  // namespace hangar::schematics
