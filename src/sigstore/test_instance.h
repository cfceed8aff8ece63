// An instance of Sigstore that exists for one test: an authority for certificates, one for
// timestamps, a certificate log and a log of signatures. Makes keyless signatures, also ones with a
// single defect.
#pragma once

#include "base/base64.h"
#include "base/destroyed_by.h"
#include "base/digest.h"
#include "base/time.h"
#include "json/value.h"
#include "modules/cosign.h"
#include "sigstore/internal/openssl.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/obj_mac.h>
#include <openssl/objects.h>
#include <openssl/ts.h>
#include <openssl/types.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::sigstore {

// 2025-06-01T12:00:00Z: when signatures are made.
inline constexpr std::int64_t kSigned = 1748779200;
inline constexpr std::string_view kSubject =
    "https://github.com/team/web/.github/workflows/release.yml@refs/tags/v1";
inline constexpr std::string_view kOidcIssuer = "https://token.actions.githubusercontent.com";

class TestKey {
 public:
  TestKey() : key_(EVP_EC_gen("P-256")) {}

  [[nodiscard]] EVP_PKEY* get() const { return key_.get(); }
  [[nodiscard]] std::string der() const { return internal::der_of<i2d_PUBKEY>(key_.get()); }
  [[nodiscard]] std::string sign(std::string_view bytes) const {
    const std::unique_ptr<EVP_MD_CTX, DestroyedBy<EVP_MD_CTX_free>> context(EVP_MD_CTX_new());
    std::size_t size = static_cast<std::size_t>(EVP_PKEY_get_size(key_.get()));
    std::string signature(size, '\0');
    const bool is_signed =
        EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key_.get()) == 1 &&
        EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                       internal::bytes_of(bytes), bytes.size()) == 1;
    EXPECT_TRUE(is_signed);
    signature.resize(size);
    return signature;
  }

 private:
  std::unique_ptr<EVP_PKEY, DestroyedBy<EVP_PKEY_free>> key_;
};

inline std::string digest_bytes(std::string_view bytes) {
  const Sha256Bytes digest = sha256(bytes);
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

struct TestCertificate {
  internal::CertificatePtr certificate;
  TestKey key;

  [[nodiscard]] std::string der() const { return internal::der_of<i2d_X509>(certificate.get()); }
  [[nodiscard]] std::string pem() const { return pem_of(der()); }
  [[nodiscard]] static std::string pem_of(std::string_view der) {
    return fmt::format("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n",
                       wrapped(base64_encode(der)));
  }

 private:
  static std::string wrapped(const std::string& text) {
    constexpr std::size_t kLine = 64;
    std::string lines;
    for (std::size_t at = 0; at < text.size(); at += kLine)
      lines += (at == 0 ? "" : "\n") + text.substr(at, kLine);
    return lines;
  }
};

// The fields of a certificate, in the syntax of OpenSSL's configuration; empty fields are left out.
struct CertificateOptions {
  std::string name = {};
  std::int64_t from = kSigned - 600;
  std::int64_t to = kSigned + 600;
  std::string basic_constraints = {};
  std::string key_usage = "critical,digitalSignature";
  std::string extended_key_usage = "codeSigning";
  std::string alternative_name = fmt::format("critical,URI:{}", kSubject);
  std::string issuer = std::string(kOidcIssuer);           // Fulcio's current extension.
  std::string issuer_as_bytes = std::string(kOidcIssuer);  // The extension of old certificates.
  // The key of the certificate log that has seen it, and the log's id; null: no log has.
  const TestKey* seen_by = nullptr;
  std::string log_id = {};
  std::uint64_t seen_at_ms = std::uint64_t{kSigned} * 1000;
  bool is_seen_as_another = false;
};

inline void add_extension(X509* certificate, X509* issuer, int id, const std::string& value) {
  if (value.empty()) return;
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const internal::ExtensionPtr extension(X509V3_EXT_conf_nid(nullptr, &context, id, value.c_str()));
  EXPECT_TRUE(extension != nullptr) << value;
  EXPECT_EQ(X509_add_ext(certificate, extension.get(), -1), 1);
}

inline void add_bytes(X509* certificate, const char* oid, std::string_view bytes) {
  const internal::ObjectPtr object(OBJ_txt2obj(oid, 1));
  const std::unique_ptr<ASN1_OCTET_STRING, DestroyedBy<ASN1_OCTET_STRING_free>> value(
      ASN1_OCTET_STRING_new());
  ASN1_OCTET_STRING_set(value.get(), internal::bytes_of(bytes), static_cast<int>(bytes.size()));
  const internal::ExtensionPtr extension(
      X509_EXTENSION_create_by_OBJ(nullptr, object.get(), 0, value.get()));
  EXPECT_EQ(X509_add_ext(certificate, extension.get(), -1), 1);
}

// Tag and length of DER, for less than 64 KiB.
inline std::string der_with(char tag, std::string_view bytes) {
  std::string head(1, tag);
  if (bytes.size() < 0x80) {
    head += static_cast<char>(bytes.size());
  } else if (bytes.size() <= 0xff) {
    head += {static_cast<char>(0x81), static_cast<char>(bytes.size())};
  } else {
    head += {static_cast<char>(0x82), static_cast<char>(bytes.size() >> 8U),
             static_cast<char>(bytes.size() & 0xffU)};
  }
  return head + std::string(bytes);
}

inline std::string big_endian(std::uint64_t number, int bytes) {
  std::string text;
  for (int shift = (bytes - 1) * 8; shift >= 0; shift -= 8)
    text += static_cast<char>(number >> static_cast<unsigned>(shift) & 0xffU);
  return text;
}

// `issuer` null: signed by itself.
inline TestCertificate make_certificate(const CertificateOptions& options,
                                        const TestCertificate* issuer) {
  TestCertificate made{.certificate = internal::CertificatePtr(X509_new()), .key = {}};
  X509* const certificate = made.certificate.get();
  X509* const by = issuer == nullptr ? certificate : issuer->certificate.get();
  EVP_PKEY* const by_key = issuer == nullptr ? made.key.get() : issuer->key.get();
  static std::int64_t serial = 1;
  X509_set_version(certificate, X509_VERSION_3);
  ASN1_INTEGER_set_int64(X509_get_serialNumber(certificate), ++serial);
  X509_set_pubkey(certificate, made.key.get());
  if (!options.name.empty()) {
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                               internal::bytes_of(options.name), -1, -1, 0);
  }
  X509_set_issuer_name(certificate, X509_get_subject_name(by));
  ASN1_TIME_set(X509_getm_notBefore(certificate), options.from);
  ASN1_TIME_set(X509_getm_notAfter(certificate), options.to);
  add_extension(certificate, by, NID_basic_constraints, options.basic_constraints);
  add_extension(certificate, by, NID_key_usage, options.key_usage);
  add_extension(certificate, by, NID_ext_key_usage, options.extended_key_usage);
  add_extension(certificate, by, NID_subject_key_identifier, "hash");
  add_extension(certificate, by, NID_subject_alt_name, options.alternative_name);
  if (!options.issuer_as_bytes.empty()) {
    add_bytes(certificate, "1.3.6.1.4.1.57264.1.1", options.issuer_as_bytes);
  }
  if (!options.issuer.empty()) {
    add_bytes(certificate, "1.3.6.1.4.1.57264.1.8", der_with('\x0c', options.issuer));
  }
  EXPECT_GT(X509_sign(certificate, by_key, EVP_sha256()), 0);
  if (options.seen_by != nullptr) {
    const std::string seen =
        internal::der_of<i2d_re_X509_tbs>(certificate) + (options.is_seen_as_another ? "x" : "");
    const std::string issuer_key = internal::der_of<i2d_X509_PUBKEY>(X509_get_X509_PUBKEY(by));
    const std::string signature = options.seen_by->sign(
        std::string(2, '\0') + big_endian(options.seen_at_ms, 8) + big_endian(1, 2) +
        digest_bytes(issuer_key) + big_endian(seen.size(), 3) + seen + big_endian(0, 2));
    // SHA-256 with ECDSA.
    const std::string timestamp = std::string(1, '\0') + options.log_id +
                                  big_endian(options.seen_at_ms, 8) + big_endian(0, 2) +
                                  "\x04\x03" + big_endian(signature.size(), 2) + signature;
    const std::string list = big_endian(timestamp.size(), 2) + timestamp;
    add_bytes(certificate, "1.3.6.1.4.1.11129.2.4.2",
              der_with('\x04', big_endian(list.size(), 2) + list));
    EXPECT_GT(X509_sign(certificate, by_key, EVP_sha256()), 0);
  }
  return made;
}

// The root of a Merkle tree (RFC 6962, section 2.1), and the path from one of its leaves.
inline std::size_t split_of(std::size_t count) {
  std::size_t split = 1;
  while (split * 2 < count)
    split *= 2;
  return split;
}
inline std::string tree_root(const std::vector<std::string>& leaves) {
  if (leaves.size() == 1) return digest_bytes(std::string(1, '\0') + leaves.front());
  const auto middle = leaves.begin() + static_cast<std::ptrdiff_t>(split_of(leaves.size()));
  return digest_bytes("\x01" + tree_root({leaves.begin(), middle}) +
                      tree_root({middle, leaves.end()}));
}
inline std::vector<std::string> tree_path(std::size_t at, const std::vector<std::string>& leaves) {
  if (leaves.size() == 1) return {};
  const std::size_t split = split_of(leaves.size());
  const auto middle = leaves.begin() + static_cast<std::ptrdiff_t>(split);
  const std::vector<std::string> left(leaves.begin(), middle);
  const std::vector<std::string> right(middle, leaves.end());
  std::vector<std::string> path = at < split ? tree_path(at, left) : tree_path(at - split, right);
  path.push_back(tree_root(at < split ? right : left));
  return path;
}

// The signed bytes of a bundle's envelope.
inline std::string envelope_bytes(std::string_view payload) {
  constexpr std::string_view kType = "application/vnd.in-toto+json";
  return fmt::format("DSSEv1 {} {} {} {}", kType.size(), kType, payload.size(), payload);
}

// A signature, its material, and the claim about them.
struct KeylessSignature {
  std::string bytes;
  std::string payload;
  std::string signature;
  modules::KeylessAnnotations annotations = {};
  std::optional<json::Value> material = std::nullopt;  // The material of a bundle.

  [[nodiscard]] modules::Claim claim() const {
    return {.bytes = bytes,
            .signature = signature,
            .payload = payload,
            .annotations = material ? nullptr : &annotations,
            .material = material ? &*material : nullptr};
  }
};

class TestInstance {
 public:
  TestInstance() {
    CertificateOptions authority{.name = "root",
                                 .from = kSigned - 86400,
                                 .to = kSigned + 86400,
                                 .basic_constraints = "critical,CA:TRUE",
                                 .key_usage = "critical,keyCertSign,cRLSign",
                                 .extended_key_usage = "",
                                 .alternative_name = "",
                                 .issuer = "",
                                 .issuer_as_bytes = ""};
    root = make_certificate(authority, nullptr);
    authority.name = "intermediate";
    authority.extended_key_usage = "codeSigning";
    intermediate = make_certificate(authority, &root);
    authority.name = "timestamps";
    authority.basic_constraints = "";
    authority.key_usage = "critical,digitalSignature";
    authority.extended_key_usage = "critical,timeStamping";
    timestamps = make_certificate(authority, &root);
  }

  // The certificate of a signer.
  [[nodiscard]] CertificateOptions leaf() const {
    return {.seen_by = &certificate_log, .log_id = digest_bytes(certificate_log.der())};
  }
  [[nodiscard]] TestCertificate issue(const CertificateOptions& options) const {
    return make_certificate(options, &intermediate);
  }

  [[nodiscard]] json::Value trust_root() const {
    const auto chain = [](const std::vector<const TestCertificate*>& certificates) {
      json::Array list;
      for (const TestCertificate* const one : certificates)
        list.push_back({{"rawBytes", base64_encode(one->der())}});
      return json::Object{{"certificates", std::move(list)}};
    };
    const json::Object valid{{"start", to_rfc3339(at(kSigned - 3600))},
                             {"end", to_rfc3339(at(kSigned + 3600))}};
    const auto log_of = [&valid](const TestKey& key) {
      return json::Object{
          {"baseUrl", "https://log.example.com"},
          {"hashAlgorithm", "SHA2_256"},
          {"publicKey", json::Object{{"rawBytes", base64_encode(key.der())},
                                     {"keyDetails", "PKIX_ECDSA_P256_SHA_256"},
                                     {"validFor", valid}}},
          {"logId", json::Object{{"keyId", base64_encode(digest_bytes(key.der()))}}}};
    };
    return json::Object{{"mediaType", "application/vnd.dev.sigstore.trustedroot+json;version=0.1"},
                        {"tlogs", json::Array{log_of(log)}},
                        {"certificateAuthorities",
                         json::Array{json::Object{{"certChain", chain({&intermediate, &root})},
                                                  {"validFor", valid}}}},
                        {"ctlogs", json::Array{log_of(certificate_log)}},
                        {"timestampAuthorities",
                         json::Array{json::Object{{"certChain", chain({&timestamps, &root})},
                                                  {"validFor", valid}}}}};
  }

  // The log's entry in the form of cosign's annotation.
  [[nodiscard]] std::string annotated_entry(const std::string& body,
                                            std::int64_t time = kSigned) const {
    return fmt::format(
        R"({{"SignedEntryTimestamp": "{}", "Payload": {{"body": "{}", "integratedTime": {},
             "logIndex": 7, "logID": "{}"}}}})",
        base64_encode(promise_for(body, time)), base64_encode(body), time, log_id_hex());
  }
  [[nodiscard]] std::string promise_for(const std::string& body, std::int64_t time) const {
    return log.sign(fmt::format(R"({{"body":"{}","integratedTime":{},"logID":"{}","logIndex":7}})",
                                base64_encode(body), time, log_id_hex()));
  }
  [[nodiscard]] std::string log_id_hex() const { return sha256_hex(log.der()); }

  // The entry of a bundle, with a promise and with a proof in a tree of seven entries.
  [[nodiscard]] json::Value bundled_entry(const std::string& body,
                                          std::int64_t time = kSigned) const {
    constexpr std::size_t kIndex = 4;
    std::vector<std::string> leaves = {"a", "b", "c", "d", body, "e", "f"};
    json::Array hashes;
    for (const std::string& one : tree_path(kIndex, leaves))
      hashes.emplace_back(base64_encode(one));
    return json::Object{
        {"logIndex", "7"},
        {"logId", json::Object{{"keyId", base64_encode(digest_bytes(log.der()))}}},
        {"integratedTime", fmt::format("{}", time)},
        {"inclusionPromise",
         json::Object{{"signedEntryTimestamp", base64_encode(promise_for(body, time))}}},
        {"inclusionProof",
         json::Object{{"logIndex", fmt::format("{}", kIndex)},
                      {"treeSize", fmt::format("{}", leaves.size())},
                      {"rootHash", base64_encode(tree_root(leaves))},
                      {"hashes", std::move(hashes)},
                      {"checkpoint", json::Object{{"envelope", checkpoint(leaves)}}}}},
        {"canonicalizedBody", base64_encode(body)}};
  }
  [[nodiscard]] std::string checkpoint(const std::vector<std::string>& leaves) const {
    const std::string text = fmt::format("log.example.com - 1\n{}\n{}\n", leaves.size(),
                                         base64_encode(tree_root(leaves)));
    return fmt::format("{}\n\u2014 log.example.com {}\n", text,
                       base64_encode(digest_bytes(log.der()).substr(0, 4) + log.sign(text)));
  }

  // The body of a log entry for a signature: for its bytes, or for the payload of an envelope.
  [[nodiscard]] static std::string body_for(const KeylessSignature& of,
                                            const TestCertificate& certificate) {
    return body_for(of, certificate.pem());
  }
  [[nodiscard]] static std::string body_for(const KeylessSignature& of, const std::string& pem) {
    if (of.material) {
      return fmt::format(
          R"({{"apiVersion":"0.0.1","kind":"dsse","spec":{{"payloadHash":{{"algorithm":"sha256",)"
          R"("value":"{}"}},"signatures":[{{"signature":"{}","verifier":"{}"}}]}}}})",
          sha256_hex(of.payload), base64_encode(of.signature), base64_encode(pem));
    }
    return fmt::format(
        R"({{"apiVersion":"0.0.1","kind":"hashedrekord","spec":{{"data":{{"hash":{{"algorithm":)"
        R"("sha256","value":"{}"}}}},"signature":{{"content":"{}","publicKey":{{"content":"{}"}}}}}}}})",
        sha256_hex(of.bytes), base64_encode(of.signature), base64_encode(pem));
  }

  // A signature in the form of cosign's annotations.
  [[nodiscard]] KeylessSignature sign(const std::string& payload,
                                      const TestCertificate& certificate) const {
    KeylessSignature made{
        .bytes = payload, .payload = payload, .signature = certificate.key.sign(payload)};
    made.annotations = {.certificate = certificate.pem(),
                        .log_entry = annotated_entry(body_for(made, certificate))};
    return made;
  }
  // A signature in the form of a bundle.
  [[nodiscard]] KeylessSignature sign_bundle(const std::string& payload,
                                             const TestCertificate& certificate) const {
    const std::string bytes = envelope_bytes(payload);
    KeylessSignature made{.bytes = bytes,
                          .payload = payload,
                          .signature = certificate.key.sign(bytes),
                          .material = json::Object{}};
    made.material =
        json::Object{{"certificate", json::Object{{"rawBytes", base64_encode(certificate.der())}}},
                     {"tlogEntries", json::Array{bundled_entry(body_for(made, certificate))}}};
    return made;
  }

  // The response of the timestamp authority.
  [[nodiscard]] std::string timestamp(std::string_view signature, std::int64_t time = kSigned,
                                      const EVP_MD* digest = EVP_sha256()) const {
    const std::unique_ptr<TS_REQ, DestroyedBy<TS_REQ_free>> request(TS_REQ_new());
    const std::unique_ptr<TS_MSG_IMPRINT, DestroyedBy<TS_MSG_IMPRINT_free>> imprint(
        TS_MSG_IMPRINT_new());
    const std::unique_ptr<X509_ALGOR, DestroyedBy<X509_ALGOR_free>> algorithm(X509_ALGOR_new());
    X509_ALGOR_set_md(algorithm.get(), digest);
    std::array<unsigned char, EVP_MAX_MD_SIZE> hashed{};
    unsigned hashed_size = 0;
    EVP_Digest(signature.data(), signature.size(), hashed.data(), &hashed_size, digest, nullptr);
    TS_MSG_IMPRINT_set_algo(imprint.get(), algorithm.get());
    TS_MSG_IMPRINT_set_msg(imprint.get(), hashed.data(), static_cast<int>(hashed_size));
    TS_REQ_set_version(request.get(), 1);
    TS_REQ_set_msg_imprint(request.get(), imprint.get());
    const internal::BioPtr bytes(BIO_new(BIO_s_mem()));
    const std::string der = internal::der_of<i2d_TS_REQ>(request.get());
    BIO_write(bytes.get(), der.data(), static_cast<int>(der.size()));

    const std::unique_ptr<TS_RESP_CTX, DestroyedBy<TS_RESP_CTX_free>> context(TS_RESP_CTX_new());
    const internal::ObjectPtr policy(OBJ_txt2obj("1.2.3.4", 1));
    TS_RESP_CTX_set_signer_cert(context.get(), timestamps.certificate.get());
    TS_RESP_CTX_set_signer_key(context.get(), timestamps.key.get());
    TS_RESP_CTX_set_signer_digest(context.get(), EVP_sha256());
    TS_RESP_CTX_set_ess_cert_id_digest(context.get(), EVP_sha256());
    TS_RESP_CTX_set_def_policy(context.get(), policy.get());
    TS_RESP_CTX_add_md(context.get(), digest);
    TS_RESP_CTX_set_serial_cb(
        context.get(),
        [](TS_RESP_CTX* /*context*/, void* /*data*/) {
          ASN1_INTEGER* const serial = ASN1_INTEGER_new();
          ASN1_INTEGER_set(serial, 1);
          return serial;
        },
        nullptr);
    TS_RESP_CTX_set_time_cb(
        context.get(),
        [](TS_RESP_CTX* /*context*/, void* data, long* seconds, long* microseconds) {
          *seconds = static_cast<long>(*static_cast<std::int64_t*>(data));
          *microseconds = 0;
          return 1;
        },
        &time);
    const internal::TimestampPtr response(TS_RESP_create_response(context.get(), bytes.get()));
    EXPECT_TRUE(response != nullptr);
    return internal::der_of<i2d_TS_RESP>(response.get());
  }

  [[nodiscard]] static WallTime at(std::int64_t seconds) {
    return WallTime(std::chrono::seconds(seconds));
  }

  TestCertificate root;
  TestCertificate intermediate;
  TestCertificate timestamps;
  TestKey certificate_log;
  TestKey log;
};

}  // namespace hangar::sigstore
