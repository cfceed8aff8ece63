#include "modules/cosign.h"

#include "base/base64.h"
#include "base/digest.h"
#include "base/result.h"
#include "modules/test_signers.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::modules {
namespace {

using testing::HasSubstr;

constexpr std::string_view kWasm = "application/wasm";
constexpr std::string_view kSimple = "application/vnd.dev.cosign.simplesigning.v1+json";
constexpr std::string_view kSigstore = "application/vnd.dev.sigstore.bundle.v0.3+json";
constexpr std::string_view kPredicate = "https://sigstore.dev/cosign/sign/v1";

std::string sha(std::string_view bytes) {
  return "sha256:" + sha256_hex(bytes);
}

std::string layer(std::string_view type, std::string_view bytes, std::string_view more = "") {
  return fmt::format(R"({{"mediaType": "{}", "digest": "{}", "size": {}{}}})", type, sha(bytes),
                     bytes.size(), more);
}
std::string image(std::string_view layers) {
  return fmt::format(R"({{"schemaVersion": 2, "layers": [{}]}})", layers);
}
std::string annotated(std::string_view signature) {
  return fmt::format(R"(, "annotations": {{"dev.cosignproject.cosign/signature": "{}"}})",
                     signature);
}

std::string payload_for(std::string_view digest,
                        std::string_view type = "cosign container image signature") {
  return fmt::format(
      R"({{"critical": {{"type": "{}", "image": {{"docker-manifest-digest": "{}"}}}}}})", type,
      digest);
}

CosignProof simple_proof(const std::string& manifest, std::string payload, std::string_view by) {
  std::string signature = std::string(by) + payload;
  return {.manifests = {manifest},
          .form = SignatureForm::SimpleSigning,
          .blob = std::move(payload),
          .signature = std::move(signature)};
}

std::string statement_for(std::string_view hex, std::string_view predicate = kPredicate) {
  return fmt::format(
      R"({{"_type": "https://in-toto.io/Statement/v1", "predicateType": "{}",
           "subject": [{{"name": "x", "digest": {{"sha256": "{}"}}}}]}})",
      predicate, hex);
}
CosignProof bundle_proof(const std::string& manifest, const std::string& statement,
                         std::string_view by,
                         std::string_view type = "application/vnd.in-toto+json") {
  const std::string signed_bytes =
      fmt::format("DSSEv1 {} {} {} {}", type.size(), type, statement.size(), statement);
  return {
      .manifests = {manifest},
      .form = SignatureForm::Bundle,
      .blob = fmt::format(
          R"({{"mediaType": "{}", "dsseEnvelope": {{"payload": "{}", "payloadType": "{}",
                   "signatures": [{{"sig": "{}"}}]}}}})",
          kSigstore, base64_encode(statement), type, base64_encode(std::string(by) + signed_bytes)),
      .signature = {}};
}

std::string refusal_of(const CosignProof& proof) {
  const Result<std::string> verified = verify_proof(proof, NamedSigner("team"));
  return verified ? "verified" : verified.error().message();
}

const std::string kManifest = image(layer(kWasm, "a module"));

TEST(Cosign, LeadsFromASignatureToTheLayerThatIsTheModule) {
  EXPECT_EQ(verify_proof(simple_proof(kManifest, payload_for(sha(kManifest)), "team"),
                         NamedSigner("team"))
                .value(),
            sha("a module"));
  EXPECT_EQ(verify_proof(bundle_proof(kManifest, statement_for(sha256_hex(kManifest)), "team"),
                         NamedSigner("team"))
                .value(),
            sha("a module"));
}

TEST(Cosign, LeadsThroughTheIndexThatIsSigned) {
  const std::string index =
      fmt::format(R"({{"schemaVersion": 2, "manifests": [{}]}})",
                  layer("application/vnd.oci.image.manifest.v1+json", kManifest));
  CosignProof proof = simple_proof(index, payload_for(sha(index)), "team");
  EXPECT_THAT(refusal_of(proof), HasSubstr("leads to another manifest"));
  proof.manifests.push_back(kManifest);
  EXPECT_EQ(verify_proof(proof, NamedSigner("team")).value(), sha("a module"));
  proof.manifests.back() = image(layer(kWasm, "another module"));
  EXPECT_THAT(refusal_of(proof), HasSubstr("leads to another manifest"));
}

TEST(Cosign, RefusesWhatTheKeysHaveNotSignedForThatManifest) {
  const std::string digest = sha(kManifest);
  const std::string other = image(layer(kWasm, "another module"));

  EXPECT_EQ(refusal_of(simple_proof(kManifest, payload_for(digest), "stranger")),
            "the signature was made by none of the rule's keys");
  EXPECT_EQ(refusal_of(simple_proof(kManifest, payload_for(sha(other)), "team")),
            "the signature was made by one of the rule's keys, but for " + sha(other));
  EXPECT_EQ(refusal_of(simple_proof(other, payload_for(digest), "team")),
            "the signature was made by one of the rule's keys, but for " + digest);
  EXPECT_EQ(refusal_of(simple_proof(kManifest, payload_for("sha256:<b>"), "team")),
            "the signature was made by one of the rule's keys, but for another kind of digest");
  EXPECT_THAT(refusal_of(simple_proof(kManifest, payload_for(digest, "atomic signature"), "team")),
              HasSubstr("not of the type"));
  CosignProof changed = simple_proof(kManifest, payload_for(digest), "team");
  changed.blob += " ";
  EXPECT_EQ(refusal_of(changed), "the signature was made by none of the rule's keys");
  CosignProof unsigned_one = simple_proof(kManifest, payload_for(digest), "team");
  unsigned_one.signature.clear();
  EXPECT_EQ(refusal_of(unsigned_one), "it is empty");
  EXPECT_NE(refusal_of(simple_proof("{", payload_for(sha("{")), "team")), "verified");
  EXPECT_NE(refusal_of({}), "verified");
}

TEST(Cosign, RefusesBundlesThatAreNotSignaturesOfThatManifest) {
  const std::string hex = sha256_hex(kManifest);

  EXPECT_EQ(refusal_of(bundle_proof(kManifest, statement_for(hex), "stranger")),
            "the signature was made by none of the rule's keys");
  EXPECT_THAT(refusal_of(bundle_proof(kManifest, statement_for(std::string(64, 'a')), "team")),
              HasSubstr("but for sha256:aaaa"));
  EXPECT_THAT(refusal_of(bundle_proof(
                  kManifest, statement_for(hex, "https://slsa.dev/provenance/v1"), "team")),
              HasSubstr("an attestation of another kind"));
  EXPECT_THAT(refusal_of(bundle_proof(kManifest, statement_for(hex), "team", "text/plain")),
              HasSubstr("not that of a signed in-toto statement"));
  CosignProof other_type = bundle_proof(kManifest, statement_for(hex), "team");
  other_type.blob = "{}";
  EXPECT_THAT(refusal_of(other_type), HasSubstr("not of the type"));
}

TEST(Cosign, TakesNoPayloadOfOneFormForOneOfTheOther) {
  CosignProof proof = bundle_proof(kManifest, statement_for(sha256_hex(kManifest)), "team");
  proof.form = SignatureForm::SimpleSigning;
  proof.signature = "team" + proof.blob;
  EXPECT_NE(refusal_of(proof), "verified");
}

TEST(Cosign, ListsTheSignaturesOfAManifest) {
  const std::string signature = base64_encode("signature");
  const auto listed = read_signatures(
      image(layer(kSimple, "one", annotated(signature)) + "," +
            layer(kWasm, "no", annotated(signature)) + "," + layer(kSimple, "unsigned") + "," +
            layer(kSimple, "torn", annotated("!")) + "," + layer(kSigstore, "two")));

  ASSERT_TRUE(listed);
  ASSERT_EQ(listed->size(), 2U);
  EXPECT_EQ(listed->front().blob.digest, sha("one"));
  EXPECT_EQ(listed->front().signature, "signature");
  EXPECT_EQ(listed->front().annotations, KeylessAnnotations());
  EXPECT_EQ(listed->back().form, SignatureForm::Bundle);
  EXPECT_FALSE(read_signatures(R"({"manifests": []})"));
  EXPECT_FALSE(read_signatures("no JSON"));
}

TEST(Cosign, ListsWhatComesWithAKeylessSignature) {
  const auto keyless = [](std::string_view certificate) {
    return image(layer(kSimple, "one",
                       fmt::format(R"(, "annotations": {{
                         "dev.cosignproject.cosign/signature": "c2ln",
                         "dev.sigstore.cosign/certificate": "{}",
                         "dev.sigstore.cosign/bundle": "entry",
                         "dev.sigstore.cosign/rfc3161timestamp": "token"}})",
                                   certificate)));
  };
  const KeylessAnnotations expected{
      .certificate = "pem", .log_entry = "entry", .timestamp = "token"};

  EXPECT_EQ(read_signatures(keyless("pem"))->at(0).annotations, expected);
  EXPECT_EQ(read_signatures(keyless(std::string(kAnnotationBytesMax + 1, 'a')))
                ->at(0)
                .annotations.certificate,
            "");
}

TEST(Cosign, LooksAtABoundedNumberOfBoundedSignatures) {
  std::string layers;
  for (std::size_t at = 0; at < 2 * kSignaturesMax; ++at)
    layers += (at == 0 ? "" : ",") + layer(kSimple, fmt::format("{}", at), annotated("c2ln"));
  EXPECT_EQ(read_signatures(image(layers))->size(), kSignaturesMax);

  const auto of_size = [](std::uint64_t size) {
    return image(fmt::format(R"({{"mediaType": "{}", "digest": "{}", "size": {}{}}})", kSimple,
                             sha("x"), size, annotated("c2ln")));
  };
  EXPECT_EQ(read_signatures(of_size(kSignatureBytesMax))->size(), 1U);
  EXPECT_EQ(read_signatures(of_size(kSignatureBytesMax + 1))->size(), 0U);
  EXPECT_EQ(read_signatures(image(layer(kSimple, "x", annotated(std::string(5000, 'A')))))->size(),
            0U);
}

TEST(Cosign, ListsReferrersThatMayHaveSignatures) {
  const auto entry = [](std::string_view bytes, std::string_view type) {
    return layer("application/vnd.oci.image.manifest.v1+json", bytes,
                 fmt::format(R"(, "artifactType": "{}")", type));
  };
  const auto listed = read_referrers(fmt::format(
      R"({{"schemaVersion": 2, "manifests": [{}, {}, {}, {}, {{"digest": "md5:1"}}]}})",
      entry("one", "application/vnd.dev.cosign.artifact.sig.v1+json"),
      entry("no", "application/spdx+json"), entry("two", kSigstore), layer("", "three")));

  ASSERT_TRUE(listed);
  ASSERT_EQ(listed->size(), 3U);
  EXPECT_EQ((*listed)[0].digest, sha("one"));
  EXPECT_EQ((*listed)[1].digest, sha("two"));
  EXPECT_EQ((*listed)[2].digest, sha("three"));
  EXPECT_FALSE(read_referrers("[]"));
  EXPECT_EQ(signature_tag("sha256:ab"), "sha256-ab.sig");
  EXPECT_EQ(referrers_tag("sha256:ab"), "sha256-ab");
}

TEST(Cosign, ProofsSurviveAFile) {
  const CosignProof simple = simple_proof(kManifest, payload_for(sha(kManifest)), "team");
  CosignProof keyless = simple;
  keyless.annotations = {.certificate = "pem", .log_entry = "{}", .timestamp = "token"};
  const CosignProof bundle = bundle_proof(kManifest, statement_for("x"), "team");

  EXPECT_EQ(parse_proof(to_text(simple)).value(), simple);
  EXPECT_EQ(parse_proof(to_text(keyless)).value(), keyless);
  EXPECT_EQ(parse_proof(to_text(bundle)).value(), bundle);
  for (const std::string_view text : {"", "{}", "[]", R"({"version": 2})", R"({"version": 1})"})
    EXPECT_EQ(parse_proof(text).error().kind(), ErrorKind::Corrupt) << text;
  std::string newer = to_text(simple);
  newer.replace(newer.find(R"("version":1)"), 11, R"("version":2)");
  EXPECT_EQ(parse_proof(newer).error().kind(), ErrorKind::Corrupt) << "its source is asked again";
}

}  // namespace
}  // namespace hangar::modules
