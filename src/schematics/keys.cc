#include "schematics/keys.h"

#include "base/destroyed_by.h"
#include "base/digest.h"
#include "base/invalid.h"
#include "base/result.h"

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/types.h>
#include <openssl/x509.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::schematics {

namespace {

using KeyPtr = std::unique_ptr<EVP_PKEY, DestroyedBy<EVP_PKEY_free>>;
using KeyContext = std::unique_ptr<EVP_PKEY_CTX, DestroyedBy<EVP_PKEY_CTX_free>>;
using DigestContext = std::unique_ptr<EVP_MD_CTX, DestroyedBy<EVP_MD_CTX_free>>;

// Clears the thread's error queue: a leftover error would look like a failure of the next call,
// such as one of a TLS connection.
struct ErrorsForgotten {
  ErrorsForgotten() = default;
  ErrorsForgotten(const ErrorsForgotten&) = delete;
  ErrorsForgotten& operator=(const ErrorsForgotten&) = delete;
  ~ErrorsForgotten() { ERR_clear_error(); }
};

// Go's RSA has the same minimum.
constexpr int kRsaBitsMin = 1024;

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

struct PemBlock {
  PemBlock() = default;
  PemBlock(PemBlock&&) = default;
  PemBlock& operator=(PemBlock&&) = delete;
  // The block may have contained a private key.
  ~PemBlock() { OPENSSL_cleanse(bytes.data(), bytes.size()); }

  std::string type;
  std::string bytes;
};

Result<PemBlock> first_block(std::string_view pem) {
  const ErrorsForgotten forgotten;
  if (pem.size() > kKeyTextBytesMax) return invalid("failed to decode PEM: it is too large");
  const std::unique_ptr<BIO, DestroyedBy<BIO_free>> source(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  char* type = nullptr;
  char* header = nullptr;
  unsigned char* data = nullptr;
  long size = 0;
  if (source == nullptr || PEM_read_bio(source.get(), &type, &header, &data, &size) != 1) {
    return invalid("failed to decode PEM");
  }
  PemBlock block;
  block.type = type;
  block.bytes.assign(reinterpret_cast<const char*>(data), static_cast<std::size_t>(size));
  const bool is_encrypted = std::string_view(header).contains("ENCRYPTED");
  OPENSSL_free(type);
  OPENSSL_free(header);
  OPENSSL_clear_free(data, static_cast<std::size_t>(size));
  if (is_encrypted) return invalid("the key is encrypted: decrypt it first");
  return block;
}

std::unexpected<Error> unsupported(std::string_view type) {
  return invalid(fmt::format("unsupported key type: \"{}\"", type));
}

// InvalidInput for keys of a kind that cannot sign modules.
Result<KeyPtr> checked(KeyPtr key) {
  if (key == nullptr) return invalid("the key is damaged, or of a type that is not known");
  switch (EVP_PKEY_get_base_id(key.get())) {
    case EVP_PKEY_ED25519:
      return key;
    case EVP_PKEY_RSA:
      if (EVP_PKEY_get_bits(key.get()) < kRsaBitsMin) {
        return invalid(fmt::format("an RSA key of {} bits, the least is {}",
                                   EVP_PKEY_get_bits(key.get()), kRsaBitsMin));
      }
      return key;
    case EVP_PKEY_EC: {
      constexpr std::array<std::string_view, 4> kCurves = {"secp224r1", "prime256v1", "secp384r1",
                                                           "secp521r1"};
      std::array<char, 64> name{};
      std::size_t size = 0;
      if (EVP_PKEY_get_group_name(key.get(), name.data(), name.size(), &size) != 1 ||
          std::ranges::find(kCurves, std::string_view(name.data(), size)) == kCurves.end()) {
        return invalid("unsupported elliptic curve: expected P-224, P-256, P-384 or P-521");
      }
      return key;
    }
    default:
      return invalid("unsupported key type: expected RSA, ECDSA or Ed25519");
  }
}

Result<KeyPtr> read_private(const PemBlock& block) {
  const ErrorsForgotten forgotten;
  const unsigned char* at = bytes_of(block.bytes);
  const auto size = static_cast<long>(block.bytes.size());
  if (block.type == "RSA PRIVATE KEY") {
    return checked(KeyPtr(d2i_PrivateKey(EVP_PKEY_RSA, nullptr, &at, size)));
  }
  if (block.type == "PRIVATE KEY") {
    const std::unique_ptr<PKCS8_PRIV_KEY_INFO, DestroyedBy<PKCS8_PRIV_KEY_INFO_free>> info(
        d2i_PKCS8_PRIV_KEY_INFO(nullptr, &at, size));
    return checked(KeyPtr(info ? EVP_PKCS82PKEY(info.get()) : nullptr));
  }
  return unsupported(block.type);
}

// The public half as a SubjectPublicKeyInfo.
Result<std::string> public_half(EVP_PKEY* key) {
  if (EVP_PKEY_get_base_id(key) == EVP_PKEY_EC) {
    // Whatever form the key was read in: fingerprints are over the uncompressed point.
    EVP_PKEY_set_utf8_string_param(key, OSSL_PKEY_PARAM_EC_POINT_CONVERSION_FORMAT,
                                   OSSL_PKEY_EC_POINT_CONVERSION_FORMAT_UNCOMPRESSED);
  }
  unsigned char* bytes = nullptr;
  const int size = i2d_PUBKEY(key, &bytes);
  if (size <= 0) return invalid("the key has no public half");
  std::string der(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  OPENSSL_free(bytes);
  return der;
}

Result<std::string> fingerprint_of(std::string_view der) {
  const unsigned char* at = bytes_of(der);
  const std::unique_ptr<X509_PUBKEY, DestroyedBy<X509_PUBKEY_free>> info(
      d2i_X509_PUBKEY(nullptr, &at, static_cast<long>(der.size())));
  const unsigned char* bits = nullptr;
  int size = 0;
  if (!info || X509_PUBKEY_get0_param(nullptr, &bits, &size, nullptr, info.get()) != 1) {
    return invalid("the public key is damaged");
  }
  return sha256_hex({reinterpret_cast<const char*>(bits), static_cast<std::size_t>(size)});
}

// Signs or verifies a digest by RSA or ECDSA; Ed25519 takes the digest as a message.
KeyContext context_for(EVP_PKEY* key, int (*init)(EVP_PKEY_CTX*), int salt_size) {
  KeyContext context(EVP_PKEY_CTX_new(key, nullptr));
  if (context == nullptr || init(context.get()) != 1 ||
      EVP_PKEY_CTX_set_signature_md(context.get(), EVP_sha256()) != 1) {
    return nullptr;
  }
  if (EVP_PKEY_get_base_id(key) != EVP_PKEY_RSA) return context;
  // The padding is set first: the other settings are its parameters. OpenSSL uses the same digest
  // for the mask.
  if (EVP_PKEY_CTX_set_rsa_padding(context.get(), RSA_PKCS1_PSS_PADDING) != 1 ||
      EVP_PKEY_CTX_set_rsa_pss_saltlen(context.get(), salt_size) != 1) {
    return nullptr;
  }
  return context;
}

}  // namespace

struct PublicKey::Key {
  KeyPtr key;
};

struct PrivateKey::Key {
  KeyPtr key;
};

Result<PublicKey> PublicKey::from_der(std::string_view der) {
  const ErrorsForgotten forgotten;
  const unsigned char* at = bytes_of(der);
  KeyPtr key = HANGAR_TRY(checked(KeyPtr(d2i_PUBKEY(nullptr, &at, static_cast<long>(der.size())))));
  PublicKey made;
  made.der_ = HANGAR_TRY(public_half(key.get()));
  made.fingerprint_ = HANGAR_TRY(fingerprint_of(made.der_));
  made.key_ = std::make_shared<const Key>(Key{std::move(key)});
  return made;
}

Result<PublicKey> PublicKey::parse(std::string_view pem) {
  const ErrorsForgotten forgotten;
  const PemBlock block = HANGAR_TRY(first_block(pem));
  if (block.type == "PUBLIC KEY") return from_der(block.bytes);
  KeyPtr key;
  if (block.type == "RSA PUBLIC KEY") {
    const unsigned char* at = bytes_of(block.bytes);
    key = HANGAR_TRY(checked(
        KeyPtr(d2i_PublicKey(EVP_PKEY_RSA, nullptr, &at, static_cast<long>(block.bytes.size())))));
  } else {
    key = HANGAR_TRY(read_private(block));
  }
  const std::string der = HANGAR_TRY(public_half(key.get()));
  return from_der(der);
}

bool PublicKey::has_signed(const Sha256Bytes& digest, std::string_view signature) const {
  const ErrorsForgotten forgotten;
  EVP_PKEY* const key = key_->key.get();
  if (EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519) {
    const DigestContext context(EVP_MD_CTX_new());
    return context && EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key) == 1 &&
           EVP_DigestVerify(context.get(), bytes_of(signature), signature.size(), digest.data(),
                            digest.size()) == 1;
  }
  const KeyContext context = context_for(key, EVP_PKEY_verify_init, RSA_PSS_SALTLEN_AUTO);
  return context && EVP_PKEY_verify(context.get(), bytes_of(signature), signature.size(),
                                    digest.data(), digest.size()) == 1;
}

bool PublicKey::has_signed_bytes(std::string_view bytes, std::string_view signature) const {
  const ErrorsForgotten forgotten;
  EVP_PKEY* const key = key_->key.get();
  // Ed25519 has its own digest. The padding of RSA is PKCS #1 v1.5 unless another one is set.
  const EVP_MD* const digest =
      EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519 ? nullptr : EVP_sha256();
  const DigestContext context(EVP_MD_CTX_new());
  return context && EVP_DigestVerifyInit(context.get(), nullptr, digest, nullptr, key) == 1 &&
         EVP_DigestVerify(context.get(), bytes_of(signature), signature.size(), bytes_of(bytes),
                          bytes.size()) == 1;
}

Result<PrivateKey> PrivateKey::parse(std::string_view pem) {
  const ErrorsForgotten forgotten;
  const PemBlock block = HANGAR_TRY(first_block(pem));
  KeyPtr key = HANGAR_TRY(read_private(block));
  const std::string der = HANGAR_TRY(public_half(key.get()));
  PrivateKey made(HANGAR_TRY(PublicKey::from_der(der)));
  made.key_ = std::make_shared<const Key>(Key{std::move(key)});
  return made;
}

Result<std::string> PrivateKey::sign(const Sha256Bytes& digest) const {
  const ErrorsForgotten forgotten;
  EVP_PKEY* const key = key_->key.get();
  std::size_t size = static_cast<std::size_t>(EVP_PKEY_get_size(key));
  std::string signature(size, '\0');
  auto* const out = reinterpret_cast<unsigned char*>(signature.data());
  bool is_signed = false;
  if (EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519) {
    const DigestContext context(EVP_MD_CTX_new());
    is_signed = context && EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key) == 1 &&
                EVP_DigestSign(context.get(), out, &size, digest.data(), digest.size()) == 1;
  } else {
    const KeyContext context = context_for(key, EVP_PKEY_sign_init, RSA_PSS_SALTLEN_MAX);
    is_signed =
        context && EVP_PKEY_sign(context.get(), out, &size, digest.data(), digest.size()) == 1;
  }
  if (!is_signed) return fail(ErrorKind::Unavailable, "cannot sign with this key");
  signature.resize(size);
  return signature;
}

Result<> PublicKeys::add(PublicKey key) {
  if (keys_.size() >= kKeysMax && find(key.fingerprint()) == nullptr) {
    return fail(ErrorKind::LimitExceeded, fmt::format("more than {} keys", kKeysMax));
  }
  std::string fingerprint = key.fingerprint();
  keys_.try_emplace(std::move(fingerprint), std::move(key));
  return {};
}

Result<> PublicKeys::add(const PublicKeys& others) {
  for (const auto& [fingerprint, key] : others.keys_)
    HANGAR_TRY(add(key));
  return {};
}

const PublicKey* PublicKeys::find(std::string_view fingerprint) const {
  const auto found = keys_.find(fingerprint);
  return found == keys_.end() ? nullptr : &found->second;
}

bool PublicKeys::has_signed_bytes(std::string_view bytes, std::string_view signature) const {
  return std::ranges::any_of(
      keys_, [&](const auto& entry) { return entry.second.has_signed_bytes(bytes, signature); });
}

std::vector<std::string> PublicKeys::ders() const {
  std::vector<std::string> all;
  for (const auto& [fingerprint, key] : keys_)
    all.push_back(key.der());
  return all;
}

std::string PublicKeys::id() const {
  std::string all;
  for (const auto& [fingerprint, key] : keys_)
    all += sha256_hex(key.der());
  return sha256_hex(all);
}

}  // namespace hangar::schematics
