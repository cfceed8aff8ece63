#include "sigstore/keyless.h"

#include "base/base64.h"
#include "base/digest.h"
#include "base/result.h"
#include "json/value.h"
#include "modules/cosign.h"
#include "sigstore/identity.h"
#include "sigstore/test_instance.h"
#include "sigstore/trust_root.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::sigstore {
namespace {

using testing::HasSubstr;

constexpr std::string_view kAccepted = "one of the rule's identities";
const std::string kPayload = "what is signed";

std::vector<Identity> identities(std::string_view issuer = kOidcIssuer,
                                 std::string_view subject = kSubject) {
  return {{.issuer = IdentityPattern::exact(std::string(issuer)).value(),
           .subject = IdentityPattern::exact(std::string(subject)).value()}};
}

class Keyless : public testing::Test {
 protected:
  [[nodiscard]] KeylessSigners signers() const {
    return {read_trust_root(instance_.trust_root()).value(), identities()};
  }
  // The signer, or the reason why the signature does not count.
  [[nodiscard]] std::string verdict(const KeylessSignature& signature) const {
    const Result<std::string> found = signers().find_signer(signature.claim());
    return found ? *found : found.error().message();
  }
  // The verdict on a signature in the form of annotations, by a certificate that differs from the
  // usual one.
  [[nodiscard]] std::string verdict_on(
      const std::function<void(CertificateOptions& options)>& change) const {
    CertificateOptions options = instance_.leaf();
    change(options);
    return verdict(instance_.sign(kPayload, instance_.issue(options)));
  }
  // The verdict on a bundle whose material was changed.
  [[nodiscard]] std::string verdict_on_bundle(
      const std::function<void(json::Value& material, json::Value& entry)>& change) const {
    KeylessSignature bundle = instance_.sign_bundle(kPayload, instance_.issue(instance_.leaf()));
    change(*bundle.material, bundle.material->at("tlogEntries").at(0));
    return verdict(bundle);
  }

  TestInstance instance_;
};

TEST_F(Keyless, AcceptsSignaturesOfBothForms) {
  const TestCertificate certificate = instance_.issue(instance_.leaf());

  EXPECT_EQ(verdict(instance_.sign(kPayload, certificate)), kAccepted);
  EXPECT_EQ(verdict(instance_.sign_bundle(kPayload, certificate)), kAccepted);
}

TEST_F(Keyless, AcceptsOtherKindsOfSubjects) {
  const auto by = [this](const std::string& name, std::string_view subject) {
    CertificateOptions options = instance_.leaf();
    options.alternative_name = name;
    const KeylessSigners signers(read_trust_root(instance_.trust_root()).value(),
                                 identities(kOidcIssuer, subject));
    return signers.find_signer(instance_.sign(kPayload, instance_.issue(options)).claim())
        .has_value();
  };
  EXPECT_TRUE(by("critical,email:ci@example.com", "ci@example.com"));
  EXPECT_TRUE(by("critical,otherName:1.3.6.1.4.1.57264.1.7;UTF8:ci", "ci"));
  EXPECT_FALSE(by("critical,otherName:1.3.6.1.4.1.57264.1.8;UTF8:ci", "ci"));
  EXPECT_FALSE(by("critical,DNS:ci.example.com", "ci.example.com"));
  EXPECT_FALSE(by("critical,email:ci@example.com,email:other@example.com", "ci@example.com"));
}

TEST_F(Keyless, RefusesOtherIdentities) {
  EXPECT_EQ(verdict_on([](CertificateOptions& leaf) {
              leaf.alternative_name = "critical,email:mallory@example.com";
            }),
            "its identity (subject mallory@example.com, issuer "
            "https://token.actions.githubusercontent.com) matches none of the rule's identities");
  EXPECT_THAT(verdict_on([](CertificateOptions& leaf) {
                leaf.issuer = leaf.issuer_as_bytes = "https://login.example.com";
              }),
              HasSubstr("issuer https://login.example.com) matches none of"));
  EXPECT_THAT(verdict_on([](CertificateOptions& leaf) { leaf.alternative_name = ""; }),
              HasSubstr("has to be for one subject"));
}

TEST_F(Keyless, KnowsTheIssuersOfOldAndPresentCertificates) {
  EXPECT_EQ(verdict_on([](CertificateOptions& leaf) { leaf.issuer = ""; }), kAccepted);
  EXPECT_EQ(verdict_on([](CertificateOptions& leaf) { leaf.issuer_as_bytes = ""; }), kAccepted);
  EXPECT_THAT(
      verdict_on([](CertificateOptions& leaf) { leaf.issuer = "https://login.example.com"; }),
      HasSubstr("issuer https://login.example.com)"))
      << "the present form wins";
  EXPECT_THAT(verdict_on([](CertificateOptions& leaf) { leaf.issuer = leaf.issuer_as_bytes = ""; }),
              HasSubstr("does not name the OIDC issuer"));
  EXPECT_THAT(
      verdict_on([](CertificateOptions& leaf) { leaf.issuer = std::string(kOidcIssuer) + '\n'; }),
      HasSubstr("does not name the OIDC issuer"));
}

TEST_F(Keyless, RefusesCertificatesThatWereNotValidAtTheTimeOfSigning) {
  EXPECT_THAT(verdict_on([](CertificateOptions& leaf) { leaf.to = kSigned - 1; }),
              HasSubstr("was not valid when it was made, at 2025-06-01T12:00:00Z, only from"));
  EXPECT_THAT(verdict_on([](CertificateOptions& leaf) { leaf.from = kSigned + 1; }),
              HasSubstr("was not valid when it was made"));
  EXPECT_EQ(verdict_on([](CertificateOptions& leaf) {
              leaf.from = kSigned;
              leaf.to = kSigned + 1;
            }),
            kAccepted);
}

TEST_F(Keyless, RefusesTimesOutsideOfTheTrustRoots) {
  const TestCertificate certificate = [this] {
    CertificateOptions options = instance_.leaf();
    options.to = kSigned + 7200;
    return instance_.issue(options);
  }();
  KeylessSignature late = instance_.sign(kPayload, certificate);
  late.annotations.log_entry =
      instance_.annotated_entry(TestInstance::body_for(late, certificate), kSigned + 3601);
  EXPECT_THAT(verdict(late), HasSubstr("when the trust root did not have its log"));

  EXPECT_THAT(verdict_on([](CertificateOptions& leaf) {
                leaf.seen_at_ms = (std::uint64_t{kSigned} + 3601) * 1000;
              }),
              HasSubstr("its certificate log (SCT) has not made for it"));

  json::Value root = instance_.trust_root();
  json::set_at(root.at("certificateAuthorities").at(0), {"validFor", "end"},
               "2025-06-01T11:59:59Z");
  const KeylessSigners signers(read_trust_root(root).value(), identities());
  EXPECT_THAT(
      signers.find_signer(instance_.sign(kPayload, instance_.issue(instance_.leaf())).claim())
          .error()
          .message(),
      HasSubstr("leads to none of the certificateAuthorities"));
}

TEST_F(Keyless, RefusesCertificatesForOtherPurposes) {
  EXPECT_THAT(verdict_on([](CertificateOptions& leaf) { leaf.key_usage = ""; }),
              HasSubstr("not for digital signatures"));
  EXPECT_THAT(
      verdict_on([](CertificateOptions& leaf) { leaf.key_usage = "critical,keyEncipherment"; }),
      HasSubstr("not for digital signatures"));
  EXPECT_THAT(verdict_on([](CertificateOptions& leaf) { leaf.extended_key_usage = ""; }),
              HasSubstr("not for code signing"));
  EXPECT_THAT(verdict_on([](CertificateOptions& leaf) { leaf.extended_key_usage = "serverAuth"; }),
              HasSubstr("not for code signing"));
  EXPECT_THAT(verdict_on([](CertificateOptions& leaf) {
                leaf.basic_constraints = "critical,CA:TRUE";
                leaf.key_usage = "critical,digitalSignature,keyCertSign";
              }),
              HasSubstr("is that of an authority"));
}

TEST_F(Keyless, RefusesOtherAuthorities) {
  const TestInstance other;
  // The logs know the certificate: only its authority differs.
  const TestCertificate stranger = make_certificate(instance_.leaf(), &other.intermediate);
  EXPECT_THAT(verdict(instance_.sign(kPayload, stranger)),
              HasSubstr("leads to none of the certificateAuthorities"));

  const TestCertificate self_signed = make_certificate(instance_.leaf(), nullptr);
  EXPECT_THAT(verdict(instance_.sign(kPayload, self_signed)),
              HasSubstr("leads to none of the certificateAuthorities"));

  // A certificate of a signer is not an authority.
  const TestCertificate certificate = instance_.issue(instance_.leaf());
  const TestCertificate below = make_certificate(instance_.leaf(), &certificate);
  EXPECT_THAT(verdict(instance_.sign(kPayload, below)),
              HasSubstr("leads to none of the certificateAuthorities"));
}

TEST_F(Keyless, RefusesCertificatesThatNoLogHasSeen) {
  EXPECT_THAT(verdict_on([](CertificateOptions& leaf) { leaf.seen_by = nullptr; }),
              HasSubstr("has no timestamp of a certificate log"));
  EXPECT_THAT(verdict_on([](CertificateOptions& leaf) { leaf.is_seen_as_another = true; }),
              HasSubstr("its certificate log (SCT) has not made for it"));
  const TestKey other;
  EXPECT_THAT(verdict_on([&](CertificateOptions& leaf) { leaf.seen_by = &other; }),
              HasSubstr("its certificate log (SCT) has not made for it"))
      << "by another key in the name of the log";
  EXPECT_THAT(verdict_on([&](CertificateOptions& leaf) {
                leaf.seen_by = &other;
                leaf.log_id = digest_bytes(other.der());
              }),
              HasSubstr("is in none of the trust root's ctlogs"));
}

TEST_F(Keyless, RefusesSignaturesOfOtherBytes) {
  const TestCertificate certificate = instance_.issue(instance_.leaf());
  KeylessSignature changed = instance_.sign(kPayload, certificate);
  changed.bytes += " ";
  EXPECT_THAT(verdict(changed), HasSubstr("the key of its certificate has not made it"));

  KeylessSignature other = instance_.sign(kPayload, certificate);
  other.annotations.certificate = instance_.issue(instance_.leaf()).pem();
  EXPECT_THAT(verdict(other), HasSubstr("the key of its certificate has not made it"));
}

TEST_F(Keyless, RefusesEntriesOfOtherSignatures) {
  const TestCertificate certificate = instance_.issue(instance_.leaf());
  KeylessSignature one = instance_.sign(kPayload, certificate);
  const KeylessSignature other = instance_.sign("other", certificate);
  one.annotations.log_entry = other.annotations.log_entry;
  EXPECT_THAT(verdict(one), HasSubstr("its entry of the transparency log is of another signature"));

  // The same bytes by the same key, in another signature: ECDSA's differ each time.
  one.annotations.log_entry = instance_.sign(kPayload, certificate).annotations.log_entry;
  EXPECT_THAT(verdict(one), HasSubstr("is of another signature"));

  one.annotations.log_entry =
      instance_.annotated_entry(TestInstance::body_for(one, instance_.issue(instance_.leaf())));
  EXPECT_THAT(verdict(one), HasSubstr("is of another signature"));
}

TEST_F(Keyless, RefusesSignaturesWithoutALogEntry) {
  KeylessSignature signature = instance_.sign(kPayload, instance_.issue(instance_.leaf()));
  signature.annotations.log_entry = "";
  EXPECT_THAT(verdict(signature), HasSubstr("has no entry of a transparency log"));
  signature.annotations.log_entry = "{";
  EXPECT_THAT(verdict(signature), HasSubstr("has no valid JSON"));
  signature.annotations.certificate = "";
  EXPECT_THAT(verdict(signature), HasSubstr("it has no certificate: it was made with a key"));
  EXPECT_THAT(verdict_on_bundle([](json::Value& material, json::Value& /*entry*/) {
                material.as_object().erase("tlogEntries");
              }),
              HasSubstr("has no entry of a transparency log"));
}

TEST_F(Keyless, RefusesPromisesThatTheLogHasNotMade) {
  const TestCertificate certificate = instance_.issue(instance_.leaf());
  KeylessSignature signature = instance_.sign(kPayload, certificate);
  json::Value entry = json::parse(signature.annotations.log_entry).value();
  json::set_at(entry, {"Payload", "integratedTime"}, kSigned + 1);
  signature.annotations.log_entry = json::dump(entry);
  EXPECT_THAT(verdict(signature),
              HasSubstr("a promise (SignedEntryTimestamp) that the log has not"));

  const TestInstance other;
  signature.annotations.log_entry =
      other.annotated_entry(TestInstance::body_for(signature, certificate));
  EXPECT_THAT(verdict(signature),
              HasSubstr("its transparency log is not in the trust root's tlogs"));
}

TEST_F(Keyless, RefusesInclusionProofsThatAreWrong) {
  const auto of_entry = [this](const std::function<void(json::Value & entry)>& change) {
    return verdict_on_bundle(
        [&change](json::Value& /*material*/, json::Value& entry) { change(entry); });
  };
  EXPECT_THAT(of_entry([](json::Value& entry) {
                json::set_at(entry, {"inclusionProof", "logIndex"}, "3");
              }),
              HasSubstr("its inclusion proof does not lead to the checkpoint"));
  EXPECT_THAT(of_entry([](json::Value& entry) {
                entry.at("inclusionProof").at("hashes").as_array().pop_back();
              }),
              HasSubstr("its inclusion proof does not lead to the checkpoint"));
  EXPECT_THAT(of_entry([](json::Value& entry) {
                entry.at("inclusionProof").at("hashes").at(0) = base64_encode(digest_bytes("x"));
              }),
              HasSubstr("its inclusion proof does not lead to the checkpoint"));
  EXPECT_THAT(of_entry([](json::Value& entry) {
                json::set_at(entry, {"inclusionProof", "treeSize"}, "6");
              }),
              HasSubstr("its inclusion proof does not lead to the checkpoint"));
  EXPECT_THAT(
      of_entry([](json::Value& entry) {
        std::string note(json::string_at(entry, {"inclusionProof", "checkpoint", "envelope"}));
        note.insert(note.find("\n\n") + 1, "more\n");
        json::set_at(entry, {"inclusionProof", "checkpoint", "envelope"}, json::String(note));
      }),
      HasSubstr("a checkpoint that the log has not signed"));
  EXPECT_THAT(of_entry([](json::Value& entry) {
                entry.as_object().erase("inclusionProof");
                entry.as_object().erase("inclusionPromise");
              }),
              HasSubstr("is not proven"));
  EXPECT_THAT(
      of_entry([](json::Value& entry) { json::set_at(entry, {"integratedTime"}, "1748779201"); }),
      HasSubstr("a promise (SignedEntryTimestamp) that the log has not"));
}

TEST_F(Keyless, APromiseOrAProofSuffices) {
  EXPECT_EQ(verdict_on_bundle([](json::Value& /*material*/, json::Value& entry) {
              entry.as_object().erase("inclusionProof");
            }),
            kAccepted);
  // The time beside a proof is not signed.
  EXPECT_THAT(verdict_on_bundle([](json::Value& /*material*/, json::Value& entry) {
                entry.as_object().erase("inclusionPromise");
              }),
              HasSubstr("the signing time is not proven"));
}

TEST_F(Keyless, ATimestampProvesTheTimeWhereTheLogDoesNot) {
  const auto with_timestamp = [this](const std::function<std::string(const std::string&)>& made) {
    KeylessSignature bundle = instance_.sign_bundle(kPayload, instance_.issue(instance_.leaf()));
    bundle.material->at("tlogEntries").at(0).as_object().erase("inclusionPromise");
    bundle.material->as_object()["timestampVerificationData"] = json::Object{
        {"rfc3161Timestamps",
         json::Array{json::Object{{"signedTimestamp", base64_encode(made(bundle.signature))}}}}};
    return verdict(bundle);
  };
  EXPECT_EQ(with_timestamp(
                [this](const std::string& signature) { return instance_.timestamp(signature); }),
            kAccepted);
  EXPECT_THAT(with_timestamp([this](const std::string& /*signature*/) {
                return instance_.timestamp("another signature");
              }),
              HasSubstr("or of another signature"));
  EXPECT_THAT(with_timestamp(
                  [](const std::string& signature) { return TestInstance().timestamp(signature); }),
              HasSubstr("is by none of the trust root's timestampAuthorities"));
  EXPECT_THAT(with_timestamp([this](const std::string& signature) {
                return instance_.timestamp(signature, kSigned + 3000);
              }),
              HasSubstr("was not valid when it was made"));
  EXPECT_THAT(with_timestamp([this](const std::string& signature) {
                return instance_.timestamp(signature, kSigned + 3601);
              }),
              HasSubstr("is by none of the trust root's timestampAuthorities"));
  EXPECT_THAT(with_timestamp([this](const std::string& signature) {
                return instance_.timestamp(signature, kSigned, EVP_sha1());
              }),
              HasSubstr("not a response of a timestamp authority"));
  EXPECT_THAT(with_timestamp([](const std::string& /*signature*/) { return "no response"; }),
              HasSubstr("not a response of a timestamp authority"));
}

TEST_F(Keyless, EachProvenTimeCounts) {
  KeylessSignature signature = instance_.sign(kPayload, instance_.issue(instance_.leaf()));
  const auto with = [&](std::int64_t time) {
    signature.annotations.timestamp = json::dump(json::Object{
        {"SignedRFC3161Timestamp", base64_encode(instance_.timestamp(signature.signature, time))}});
    return verdict(signature);
  };
  EXPECT_EQ(with(kSigned), kAccepted);
  EXPECT_THAT(with(kSigned + 3000), HasSubstr("was not valid when it was made"));
}

TEST_F(Keyless, RefusesBytesThatAreNotCertificates) {
  KeylessSignature signature = instance_.sign(kPayload, instance_.issue(instance_.leaf()));
  const std::string pem = signature.annotations.certificate;
  for (const std::string& text :
       {std::string("text"), pem.substr(0, pem.size() / 2),
        std::string("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")}) {
    signature.annotations.certificate = text;
    EXPECT_THAT(verdict(signature), HasSubstr("its certificate is damaged"));
  }
}

TEST_F(Keyless, RefusesEveryFlippedByteOfACertificate) {
  const KeylessSigners accepting = signers();
  const TestCertificate certificate = instance_.issue(instance_.leaf());
  const std::string der = certificate.der();
  KeylessSignature signature = instance_.sign(kPayload, certificate);
  // The signed part follows four bytes, and its length follows its own first two bytes.
  constexpr std::size_t kHead = 4;
  const std::size_t size = kHead + static_cast<unsigned char>(der[kHead + 2]) * 256U +
                           static_cast<unsigned char>(der[kHead + 3]);
  ASSERT_LT(kHead + size, der.size());
  for (std::size_t at = kHead; at < kHead + size; ++at) {
    std::string changed = der;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    // The log contains it: only the authority has not issued it.
    signature.annotations.certificate = TestCertificate::pem_of(changed);
    signature.annotations.log_entry = instance_.annotated_entry(
        TestInstance::body_for(signature, signature.annotations.certificate));
    ASSERT_FALSE(accepting.find_signer(signature.claim())) << at;
  }
}

TEST_F(Keyless, IsNamedByItsTrustRootAndIdentities) {
  const TrustRoot root = read_trust_root(instance_.trust_root()).value();
  const TrustRoot other = read_trust_root(TestInstance().trust_root()).value();
  const std::string id = KeylessSigners(root, identities()).id();

  EXPECT_TRUE(is_sha256_hex(id));
  EXPECT_EQ(KeylessSigners(root, identities()).id(), id);
  EXPECT_NE(KeylessSigners(other, identities()).id(), id);
  EXPECT_NE(KeylessSigners(root, identities(kOidcIssuer, "another")).id(), id);
}

}  // namespace
}  // namespace hangar::sigstore
