// Keys that sign and verify modules: RSA, ECDSA on NIST's curves, and Ed25519, in PEM as yoke
// accepts it. The only place in this project that calls OpenSSL for signatures.
//
// A signature of yoke is over a SHA-256: RSA with PSS, ECDSA in ASN.1; Ed25519 takes the digest as
// its message. Signatures of cosign differ: has_signed_bytes(). A key is named by its fingerprint,
// the SHA-256 of the bits of its public half. Any thread.
#pragma once

#include "base/digest.h"
#include "base/result.h"

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::schematics {

// The size of one PEM file. The largest usual RSA key, of 16384 bits, has 13 kB.
inline constexpr std::size_t kKeyTextBytesMax = std::size_t{64} * 1024;
// The number of keys in one set: more would not fit on the command line of the verifier's process.
inline constexpr std::size_t kKeysMax = 64;

class PublicKey {
 public:
  // Reads the first block of `pem`; of a private key its public half. InvalidInput.
  [[nodiscard]] static Result<PublicKey> parse(std::string_view pem);
  // Reads a SubjectPublicKeyInfo, as der() returns it. InvalidInput.
  [[nodiscard]] static Result<PublicKey> from_der(std::string_view der);

  [[nodiscard]] const std::string& fingerprint() const { return fingerprint_; }
  [[nodiscard]] const std::string& der() const { return der_; }
  [[nodiscard]] bool has_signed(const Sha256Bytes& digest, std::string_view signature) const;
  // The same for a signature as cosign makes it: over the bytes, by RSA with PKCS #1 v1.5 and
  // SHA-256, ECDSA with SHA-256, or Ed25519.
  [[nodiscard]] bool has_signed_bytes(std::string_view bytes, std::string_view signature) const;

 private:
  struct Key;
  PublicKey() = default;

  std::shared_ptr<const Key> key_;
  std::string der_;
  std::string fingerprint_;
};

class PrivateKey {
 public:
  // Reads the first block of `pem`. InvalidInput.
  [[nodiscard]] static Result<PrivateKey> parse(std::string_view pem);

  [[nodiscard]] const PublicKey& public_key() const { return public_key_; }
  [[nodiscard]] Result<std::string> sign(const Sha256Bytes& digest) const;

 private:
  struct Key;
  explicit PrivateKey(PublicKey public_key) : public_key_(std::move(public_key)) {}

  std::shared_ptr<const Key> key_;
  PublicKey public_key_;
};

// A set of keys, one of which must have signed a module.
class PublicKeys {
 public:
  // LimitExceeded beyond kKeysMax. Adding a key twice changes nothing.
  [[nodiscard]] Result<> add(PublicKey key);
  [[nodiscard]] Result<> add(const PublicKeys& others);

  // Null when no key has that fingerprint.
  [[nodiscard]] const PublicKey* find(std::string_view fingerprint) const;
  // True when one of the keys has signed the bytes as cosign does.
  [[nodiscard]] bool has_signed_bytes(std::string_view bytes, std::string_view signature) const;
  [[nodiscard]] std::size_t size() const { return keys_.size(); }
  [[nodiscard]] std::vector<std::string> ders() const;
  // Equal only for equal sets of keys.
  [[nodiscard]] std::string id() const;

 private:
  std::map<std::string, PublicKey, std::less<>> keys_;  // By fingerprint.
};

}  // namespace hangar::schematics
