#include "sigstore/internal/certificate.h"

#include "base/digest.h"
#include "base/result.h"
#include "base/time.h"
#include "schematics/keys.h"
#include "sigstore/identity.h"
#include "sigstore/internal/openssl.h"
#include "sigstore/trust_root.h"

#include <fmt/format.h>
#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/ct.h>
#include <openssl/obj_mac.h>
#include <openssl/objects.h>
#include <openssl/pem.h>
#include <openssl/types.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::sigstore::internal {

namespace {

// Extensions of Fulcio: github.com/sigstore/fulcio/blob/main/docs/oid-info.md.
constexpr const char* kIssuerAsBytes = "1.3.6.1.4.1.57264.1.1";
constexpr const char* kIssuer = "1.3.6.1.4.1.57264.1.8";
constexpr const char* kOtherName = "1.3.6.1.4.1.57264.1.7";
// Keys and digests below 112 bits of security are refused: no SHA-1, no RSA of 1024 bits.
constexpr int kSecurityLevel = 2;
constexpr std::size_t kCertificateBytesMax = std::size_t{32} * 1024;
constexpr int kSctsMax = 16;

std::unexpected<Error> denied_certificate(std::string why) {
  return fail(ErrorKind::Denied, "its certificate " + std::move(why));
}

std::time_t seconds_of(WallTime time) {
  return std::chrono::system_clock::to_time_t(time);
}

std::string text_of_time(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return "an unknown time";
  return to_rfc3339(std::chrono::system_clock::from_time_t(::timegm(&parts)));
}

// OpenSSL's function for both ends returns a sign, and 0 for a damaged time.
bool is_valid_at(const X509* certificate, WallTime time) {
  std::time_t at = seconds_of(time);
  return X509_cmp_time(X509_get0_notBefore(certificate), &at) < 0 &&
         X509_cmp_time(X509_get0_notAfter(certificate), &at) > 0;
}

// The requirements for a leaf, independent of its issuer.
Result<> check_leaf(X509* leaf) {
  // Also reads the extensions that the other functions return.
  if (X509_check_ca(leaf) != 0) return denied_certificate("is that of an authority");
  const std::uint32_t flags = X509_get_extension_flags(leaf);
  if ((flags & EXFLAG_INVALID) != 0) return denied_certificate("has damaged extensions");
  if ((flags & EXFLAG_KUSAGE) == 0 || (X509_get_key_usage(leaf) & KU_DIGITAL_SIGNATURE) == 0) {
    return denied_certificate("is not for digital signatures (its key usage)");
  }
  if ((flags & EXFLAG_XKUSAGE) == 0 || (X509_get_extended_key_usage(leaf) & XKU_CODE_SIGN) == 0) {
    return denied_certificate("is not for code signing (its extended key usage)");
  }
  return {};
}

// If an authority is limited to purposes, they must include that of its certificates.
bool may_issue(const STACK_OF(X509) * chain) {
  for (int at = 1; at < sk_X509_num(chain); ++at) {
    X509* const authority = sk_X509_value(chain, at);
    if ((X509_get_extension_flags(authority) & EXFLAG_XKUSAGE) != 0 &&
        (X509_get_extended_key_usage(authority) & (XKU_CODE_SIGN | XKU_ANYEKU)) == 0) {
      return false;
    }
  }
  return true;
}

CertificatePtr issuer_by(X509* leaf, const Authority& authority, WallTime time) {
  const StorePtr store = store_of(authority, time);
  const CertificatesPtr untrusted = certificates_of(authority);
  const StoreContextPtr context(X509_STORE_CTX_new());
  if (!store || !untrusted || !context ||
      X509_STORE_CTX_init(context.get(), store.get(), leaf, untrusted.get()) != 1 ||
      X509_verify_cert(context.get()) != 1) {
    return nullptr;
  }
  const STACK_OF(X509)* const chain = X509_STORE_CTX_get0_chain(context.get());
  // A leaf that is itself in the trust root has no issuer, which the check of the log needs.
  if (sk_X509_num(chain) < 2 || !may_issue(chain)) return nullptr;
  X509* const issuer = sk_X509_value(chain, 1);
  if (X509_up_ref(issuer) != 1) return nullptr;
  return CertificatePtr(issuer);
}

void append_number(std::string& to, std::uint64_t number, int bytes) {
  for (int shift = (bytes - 1) * 8; shift >= 0; shift -= 8)
    to += static_cast<char>(number >> static_cast<unsigned>(shift) & 0xffU);
}

// The signed part of a certificate without the timestamps, which the log has seen.
std::string logged_part_of(const X509* leaf) {
  const CertificatePtr copy(X509_dup(leaf));
  if (!copy) return {};
  const int at = X509_get_ext_by_NID(copy.get(), NID_ct_precert_scts, -1);
  if (at < 0) return {};
  const ExtensionPtr removed(X509_delete_ext(copy.get(), at));
  return der_of<i2d_re_X509_tbs>(copy.get());
}

// The bytes that a log signs for a certificate that is about to be issued (RFC 6962, section 3.2).
std::optional<std::string> bytes_signed_by_log(const SCT* timestamp, const X509* issuer,
                                               std::string_view logged_part) {
  constexpr std::uint64_t kVersion1 = 0;
  constexpr std::uint64_t kCertificateTimestamp = 0;
  constexpr std::uint64_t kBeforeIssuing = 1;
  constexpr int kLengthBytes = 3;
  unsigned char* extensions = nullptr;
  const std::size_t extensions_size = SCT_get0_extensions(timestamp, &extensions);
  const std::string issuer_key = der_of<i2d_X509_PUBKEY>(X509_get_X509_PUBKEY(issuer));
  if (logged_part.empty() || issuer_key.empty() || extensions_size > UINT16_MAX) {
    return std::nullopt;
  }
  std::string bytes;
  append_number(bytes, kVersion1, 1);
  append_number(bytes, kCertificateTimestamp, 1);
  append_number(bytes, SCT_get_timestamp(timestamp), sizeof(std::uint64_t));
  append_number(bytes, kBeforeIssuing, sizeof(std::uint16_t));
  const Sha256Bytes digest = sha256(issuer_key);
  bytes.append(reinterpret_cast<const char*>(digest.data()), digest.size());
  append_number(bytes, logged_part.size(), kLengthBytes);
  bytes += logged_part;
  append_number(bytes, extensions_size, sizeof(std::uint16_t));
  bytes.append(reinterpret_cast<const char*>(extensions), extensions_size);
  return bytes;
}

std::string_view id_of(const SCT* timestamp) {
  unsigned char* id = nullptr;
  const std::size_t size = SCT_get0_log_id(timestamp, &id);
  return {reinterpret_cast<const char*>(id), size};
}

bool is_by(const Log& log, const SCT* timestamp, const X509* issuer, std::string_view logged_part) {
  // The clock's type ends in 2262.
  constexpr std::uint64_t kMillisecondsMax = 9'000'000'000'000;
  const WallTime time{std::chrono::milliseconds(
      static_cast<std::int64_t>(std::min(SCT_get_timestamp(timestamp), kMillisecondsMax)))};
  if (SCT_get_version(timestamp) != SCT_VERSION_V1 || !log.valid.contains(time)) return false;
  unsigned char* signature = nullptr;
  const std::size_t size = SCT_get0_signature(timestamp, &signature);
  const std::optional<std::string> bytes = bytes_signed_by_log(timestamp, issuer, logged_part);
  return bytes && size > 0 &&
         log.key.has_signed_bytes(*bytes, {reinterpret_cast<const char*>(signature), size});
}

// The value of an extension; std::nullopt unless there is exactly one.
std::optional<std::string> extension_at(const X509* certificate, const char* oid) {
  const ObjectPtr object(OBJ_txt2obj(oid, 1));
  if (!object) return std::nullopt;
  const int at = X509_get_ext_by_OBJ(certificate, object.get(), -1);
  if (at < 0 || X509_get_ext_by_OBJ(certificate, object.get(), at) >= 0) return std::nullopt;
  const ASN1_OCTET_STRING* const value = X509_EXTENSION_get_data(X509_get_ext(certificate, at));
  return value == nullptr ? std::nullopt : std::optional(std::string(text_of(value)));
}

std::optional<std::string> utf8_in(std::string_view der) {
  const unsigned char* at = bytes_of(der);
  const TextPtr text(d2i_ASN1_UTF8STRING(nullptr, &at, static_cast<long>(der.size())));
  if (!text || at != bytes_of(der) + der.size()) return std::nullopt;
  return std::string(text_of(text.get()));
}

// The current form takes precedence over that of old certificates, as in cosign.
std::optional<std::string> issuer_in(const X509* certificate) {
  if (const std::optional<std::string> der = extension_at(certificate, kIssuer)) {
    return utf8_in(*der);
  }
  return extension_at(certificate, kIssuerAsBytes);
}

std::optional<std::string> subject_in(const GENERAL_NAME* name) {
  int type = 0;
  const void* const value = GENERAL_NAME_get0_value(name, &type);
  if (type == GEN_EMAIL || type == GEN_URI) {
    return std::string(text_of(static_cast<const ASN1_IA5STRING*>(value)));
  }
  if (type != GEN_OTHERNAME) return std::nullopt;
  ASN1_OBJECT* oid = nullptr;
  ASN1_TYPE* text = nullptr;
  const ObjectPtr expected(OBJ_txt2obj(kOtherName, 1));
  if (GENERAL_NAME_get0_otherName(name, &oid, &text) != 1 || !expected ||
      OBJ_cmp(oid, expected.get()) != 0 || ASN1_TYPE_get(text) != V_ASN1_UTF8STRING) {
    return std::nullopt;
  }
  return std::string(text_of(text->value.utf8string));
}

}  // namespace

CertificatePtr read_der(std::string_view der) {
  const ErrorsForgotten forgotten;
  if (der.size() > kCertificateBytesMax) return nullptr;
  const unsigned char* at = bytes_of(der);
  CertificatePtr certificate(d2i_X509(nullptr, &at, static_cast<long>(der.size())));
  if (!certificate || at != bytes_of(der) + der.size()) return nullptr;
  return certificate;
}

CertificatePtr read_pem(std::string_view pem) {
  const ErrorsForgotten forgotten;
  if (pem.size() > 2 * kCertificateBytesMax) return nullptr;
  const BioPtr source(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  if (!source) return nullptr;
  char* type = nullptr;
  char* header = nullptr;
  unsigned char* data = nullptr;
  long size = 0;
  if (PEM_read_bio(source.get(), &type, &header, &data, &size) != 1) return nullptr;
  const bool is_certificate = std::string_view(type) == PEM_STRING_X509;
  const std::string der(reinterpret_cast<const char*>(data), static_cast<std::size_t>(size));
  OPENSSL_free(type);
  OPENSSL_free(header);
  OPENSSL_free(data);
  return is_certificate ? read_der(der) : nullptr;
}

std::string der_of_certificate(const X509* certificate) {
  const ErrorsForgotten forgotten;
  return der_of<i2d_X509>(certificate);
}

Result<schematics::PublicKey> key_of(const X509* certificate) {
  const ErrorsForgotten forgotten;
  Result<schematics::PublicKey> key =
      schematics::PublicKey::from_der(der_of<i2d_X509_PUBKEY>(X509_get_X509_PUBKEY(certificate)));
  if (!key) return denied_certificate("has a key that is not usable: " + key.error().message());
  return key;
}

Result<CertificatePtr> verify_chain(X509* leaf, const std::vector<Authority>& authorities,
                                    WallTime time) {
  const ErrorsForgotten forgotten;
  HANGAR_TRY(check_leaf(leaf));
  if (!is_valid_at(leaf, time)) {
    return denied_certificate(fmt::format(
        "was not valid when it was made, at {}, only from {} to {}", to_rfc3339(time),
        text_of_time(X509_get0_notBefore(leaf)), text_of_time(X509_get0_notAfter(leaf))));
  }
  for (const Authority& authority : authorities) {
    if (!authority.valid.contains(time)) continue;
    if (CertificatePtr issuer = issuer_by(leaf, authority, time)) return issuer;
  }
  return denied_certificate(
      fmt::format("leads to none of the certificateAuthorities that the trust root has for {}",
                  to_rfc3339(time)));
}

Result<> verify_certificate_log(const X509* leaf, const X509* issuer,
                                const std::vector<Log>& logs) {
  const ErrorsForgotten forgotten;
  const SctsPtr timestamps(
      static_cast<STACK_OF(SCT)*>(X509_get_ext_d2i(leaf, NID_ct_precert_scts, nullptr, nullptr)));
  if (!timestamps || sk_SCT_num(timestamps.get()) == 0) {
    return denied_certificate("has no timestamp of a certificate log (SCT)");
  }
  const std::string logged_part = logged_part_of(leaf);
  bool is_log_known = false;
  for (int at = 0; at < std::min(sk_SCT_num(timestamps.get()), kSctsMax); ++at) {
    const SCT* const timestamp = sk_SCT_value(timestamps.get(), at);
    const Log* const log = find_log(logs, id_of(timestamp));
    if (log == nullptr) continue;
    is_log_known = true;
    if (is_by(*log, timestamp, issuer, logged_part)) return {};
  }
  return denied_certificate(is_log_known
                                ? "has a timestamp that its certificate log (SCT) has not made "
                                  "for it"
                                : "is in none of the trust root's ctlogs");
}

Result<CertifiedIdentity> identity_of(const X509* certificate) {
  const ErrorsForgotten forgotten;
  const NamesPtr names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  if (!names || sk_GENERAL_NAME_num(names.get()) != 1) {
    return denied_certificate("has to be for one subject (its alternative name)");
  }
  const std::optional<std::string> subject = subject_in(sk_GENERAL_NAME_value(names.get(), 0));
  if (!subject || !is_identity(*subject)) {
    return denied_certificate("is for a subject of an unknown kind: not an e-mail address or URI");
  }
  const std::optional<std::string> issuer = issuer_in(certificate);
  if (!issuer || !is_identity(*issuer)) {
    return denied_certificate("does not name the OIDC issuer of its subject");
  }
  return CertifiedIdentity{.subject = *subject, .issuer = *issuer};
}

StorePtr store_of(const Authority& authority, WallTime time) {
  StorePtr store(X509_STORE_new());
  const CertificatePtr root = read_der(authority.chain.back());
  // The last certificate may be signed by an authority that is not in the trust root.
  if (!store || !root || X509_STORE_add_cert(store.get(), root.get()) != 1 ||
      X509_STORE_set_flags(store.get(), X509_V_FLAG_PARTIAL_CHAIN) != 1) {
    return nullptr;
  }
  X509_VERIFY_PARAM* const parameters = X509_STORE_get0_param(store.get());
  X509_VERIFY_PARAM_set_time(parameters, seconds_of(time));
  X509_VERIFY_PARAM_set_auth_level(parameters, kSecurityLevel);
  X509_VERIFY_PARAM_set_depth(parameters, static_cast<int>(kChainMax));
  return store;
}

CertificatesPtr certificates_of(const Authority& authority) {
  CertificatesPtr all(sk_X509_new_null());
  for (const std::string& der : authority.chain) {
    CertificatePtr one = read_der(der);
    if (!all || !one || sk_X509_push(all.get(), one.get()) <= 0) return nullptr;
    (void)one.release();
  }
  return all;
}

}  // namespace hangar::sigstore::internal
