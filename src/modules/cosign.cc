#include "modules/cosign.h"

#include "base/base64.h"
#include "base/digest.h"
#include "base/result.h"
#include "json/value.h"
#include "modules/oci_manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::modules {

namespace {

constexpr std::string_view kSimpleSigning = "application/vnd.dev.cosign.simplesigning.v1+json";
constexpr std::string_view kSignatureArtifact = "application/vnd.dev.cosign.artifact.sig.v1+json";
constexpr std::string_view kBundle = "application/vnd.dev.sigstore.bundle.v0.3+json";
constexpr std::string_view kSignatureAnnotation = "dev.cosignproject.cosign/signature";
constexpr std::string_view kCertificateAnnotation = "dev.sigstore.cosign/certificate";
constexpr std::string_view kLogEntryAnnotation = "dev.sigstore.cosign/bundle";
constexpr std::string_view kTimestampAnnotation = "dev.sigstore.cosign/rfc3161timestamp";
constexpr std::string_view kSimpleSigningType = "cosign container image signature";
constexpr std::string_view kInToto = "application/vnd.in-toto+json";
// The predicates of statements that are signatures. Other statements, such as the report of a
// scanner, may claim anything about their subject.
constexpr std::string_view kSignPredicate = "https://sigstore.dev/cosign/sign/v1";
constexpr std::array<std::string_view, 2> kStatements = {"https://in-toto.io/Statement/v1",
                                                         "https://in-toto.io/Statement/v0.1"};

constexpr std::size_t kDigestPrefixBytes = std::string_view("sha256:").size();
// RSA with 16384 bits has signatures of 2 KiB.
constexpr std::size_t kSignatureTextBytesMax = 4096;
// Bounds the signatures of an envelope, and the subjects of a statement.
constexpr std::size_t kEntriesMax = 16;
constexpr int kProofVersion = 1;

std::unexpected<Error> malformed(std::string why) {
  return fail(ErrorKind::InvalidInput, std::move(why));
}

std::optional<Descriptor> descriptor_in(const json::Value& value) {
  Descriptor descriptor{.media_type = std::string(json::string_at(value, {"mediaType"})),
                        .digest = std::string(json::string_at(value, {"digest"})),
                        .size_bytes = 0};
  const std::int64_t size = json::int_at(value, {"size"}, -1);
  const bool is_digest =
      descriptor.digest.starts_with("sha256:") &&
      is_sha256_hex(std::string_view(descriptor.digest).substr(kDigestPrefixBytes));
  if (!is_digest || size < 0) return std::nullopt;
  descriptor.size_bytes = static_cast<std::uint64_t>(size);
  return descriptor;
}

// Untrusted text, made safe for a status.
std::string digest_for_status(std::string_view text) {
  const bool is_digest =
      text.starts_with("sha256:") && is_sha256_hex(text.substr(kDigestPrefixBytes));
  return is_digest ? std::string(text) : "another kind of digest";
}

std::unexpected<Error> for_another(std::string_view signer, std::string_view digest) {
  return fail(ErrorKind::Denied, fmt::format("the signature was made by {}, but for {}", signer,
                                             digest_for_status(digest)));
}

Result<> check_simple_signing(std::string_view signer, std::string_view payload,
                              std::string_view digest) {
  const json::Value parsed = HANGAR_TRY(json::parse(payload));
  if (json::string_at(parsed, {"critical", "type"}) != kSimpleSigningType) {
    return malformed(fmt::format("its payload is not of the type \"{}\"", kSimpleSigningType));
  }
  const std::string_view of =
      json::string_at(parsed, {"critical", "image", "docker-manifest-digest"});
  if (of != digest) return for_another(signer, of);
  return {};
}

// The bytes that DSSE signs: the type and the payload, so that neither can pass for another.
std::string pre_authentication_encoding(std::string_view type, std::string_view payload) {
  return fmt::format("DSSEv1 {} {} {} {}", type.size(), type, payload.size(), payload);
}

Result<> check_statement(std::string_view signer, std::string_view payload,
                         std::string_view digest) {
  const json::Value statement = HANGAR_TRY(json::parse(payload));
  if (std::ranges::find(kStatements, json::string_at(statement, {"_type"})) == kStatements.end()) {
    return malformed("its payload is not an in-toto statement");
  }
  if (json::string_at(statement, {"predicateType"}) != kSignPredicate) {
    return malformed("its statement is an attestation of another kind, not a signature");
  }
  const json::Array* const subjects = json::array_at(statement, {"subject"});
  if (subjects == nullptr || subjects->empty() || subjects->size() > kEntriesMax) {
    return malformed(fmt::format("its statement has to have 1 to {} subjects", kEntriesMax));
  }
  const std::string_view hex = digest.substr(kDigestPrefixBytes);
  const bool is_about_it = std::ranges::any_of(*subjects, [hex](const json::Value& subject) {
    return json::string_at(subject, {"digest", "sha256"}) == hex;
  });
  if (is_about_it) return {};
  return for_another(
      signer, fmt::format("sha256:{}", json::string_at(subjects->front(), {"digest", "sha256"})));
}

Result<> check_bundle(std::string_view blob, std::string_view digest, const Signers& signers) {
  const json::Value bundle = HANGAR_TRY(json::parse(blob));
  if (json::string_at(bundle, {"mediaType"}) != kBundle) {
    return malformed(fmt::format("the bundle is not of the type {}", kBundle));
  }
  const json::Value* const envelope = json::find(bundle, {"dsseEnvelope"});
  if (envelope == nullptr) return malformed("the bundle has no dsseEnvelope");
  const std::string_view type = json::string_at(*envelope, {"payloadType"});
  const std::optional<std::string> payload = base64_decode(json::string_at(*envelope, {"payload"}));
  const json::Array* const signatures = json::array_at(*envelope, {"signatures"});
  if (type != kInToto || !payload || signatures == nullptr || signatures->size() > kEntriesMax) {
    return malformed("the bundle's envelope is not that of a signed in-toto statement");
  }
  const std::string bytes = pre_authentication_encoding(type, *payload);
  Error why_not(ErrorKind::Denied, "the bundle's envelope has no signature");
  for (const json::Value& entry : *signatures) {
    const std::string_view text = json::string_at(entry, {"sig"});
    if (text.size() > kSignatureTextBytesMax) continue;
    const std::optional<std::string> signature = base64_decode(text);
    if (!signature || signature->empty()) continue;
    const Result<std::string> signer =
        signers.find_signer({.bytes = bytes,
                             .signature = *signature,
                             .payload = *payload,
                             .material = json::find(bundle, {"verificationMaterial"})});
    if (signer) return check_statement(*signer, *payload, digest);
    why_not = signer.error();
  }
  return std::unexpected(std::move(why_not));
}

Result<> check_signature(const CosignProof& proof, std::string_view digest,
                         const Signers& signers) {
  if (proof.form == SignatureForm::Bundle) return check_bundle(proof.blob, digest, signers);
  if (proof.signature.empty()) return fail(ErrorKind::Denied, "it is empty");
  const std::string signer = HANGAR_TRY(signers.find_signer({.bytes = proof.blob,
                                                             .signature = proof.signature,
                                                             .payload = proof.blob,
                                                             .annotations = &proof.annotations}));
  return check_simple_signing(signer, proof.blob, digest);
}

std::string digest_of(std::string_view bytes) {
  return "sha256:" + sha256_hex(bytes);
}

std::string tag_of(std::string_view digest) {
  return fmt::format("sha256-{}", digest.substr(std::min(kDigestPrefixBytes, digest.size())));
}

}  // namespace

std::string signature_tag(std::string_view digest) {
  return tag_of(digest) + ".sig";
}

std::string referrers_tag(std::string_view digest) {
  return tag_of(digest);
}

Result<std::vector<Descriptor>> read_referrers(std::string_view index) {
  const Result<json::Value> parsed = json::parse(index);
  const json::Array* const entries = parsed ? json::array_at(*parsed, {"manifests"}) : nullptr;
  if (entries == nullptr) return malformed("the list of referrers is not an OCI index");
  std::vector<Descriptor> found;
  for (const json::Value& entry : *entries) {
    if (found.size() == kSignatureManifestsMax) break;
    const std::string_view type = json::string_at(entry, {"artifactType"});
    // Some registries leave the type out; then the manifest itself states it.
    if (!type.empty() && type != kSignatureArtifact && type != kSimpleSigning && type != kBundle) {
      continue;
    }
    if (std::optional<Descriptor> descriptor = descriptor_in(entry)) {
      found.push_back(*std::move(descriptor));
    }
  }
  return found;
}

Result<std::vector<ListedSignature>> read_signatures(std::string_view manifest) {
  const Result<json::Value> parsed = json::parse(manifest);
  const json::Array* const layers = parsed ? json::array_at(*parsed, {"layers"}) : nullptr;
  if (layers == nullptr) return malformed("the manifest of the signature has no layers");
  std::vector<ListedSignature> found;
  for (const json::Value& layer : *layers) {
    if (found.size() == kSignaturesMax) break;
    std::optional<Descriptor> blob = descriptor_in(layer);
    if (!blob || blob->size_bytes > kSignatureBytesMax) continue;
    if (blob->media_type == kBundle) {
      found.push_back({.form = SignatureForm::Bundle, .blob = *std::move(blob), .signature = {}});
      continue;
    }
    const std::string_view text = json::string_at(layer, {"annotations", kSignatureAnnotation});
    if (blob->media_type != kSimpleSigning || text.size() > kSignatureTextBytesMax) continue;
    std::optional<std::string> signature = base64_decode(text);
    if (!signature || signature->empty()) continue;
    const auto annotation = [&layer](std::string_view name) {
      const std::string_view value = json::string_at(layer, {"annotations", name});
      return value.size() > kAnnotationBytesMax ? std::string() : std::string(value);
    };
    found.push_back({.form = SignatureForm::SimpleSigning,
                     .blob = *std::move(blob),
                     .signature = *std::move(signature),
                     .annotations = {.certificate = annotation(kCertificateAnnotation),
                                     .log_entry = annotation(kLogEntryAnnotation),
                                     .timestamp = annotation(kTimestampAnnotation)}});
  }
  return found;
}

Result<std::string> verify_proof(const CosignProof& proof, const Signers& signers) {
  if (proof.manifests.empty()) return malformed("there is no manifest");
  HANGAR_TRY(check_signature(proof, digest_of(proof.manifests.front()), signers));
  auto content = HANGAR_TRY(read_manifest(proof.manifests.front()));
  if (const auto* const inner = std::get_if<ModuleManifest>(&content)) {
    const bool is_there =
        proof.manifests.size() == 2 && digest_of(proof.manifests.back()) == inner->manifest.digest;
    if (!is_there) return malformed("the index leads to another manifest");
    content = HANGAR_TRY(read_manifest(proof.manifests.back()));
  }
  const auto* const layer = std::get_if<ModuleLayer>(&content);
  if (layer == nullptr) return malformed("the index leads to another index");
  return layer->blob.digest;
}

std::string to_text(const CosignProof& proof) {
  json::Array manifests;
  for (const std::string& manifest : proof.manifests)
    manifests.emplace_back(base64_encode(manifest));
  const json::Object document{{"version", kProofVersion},
                              {"manifests", std::move(manifests)},
                              {"bundle", proof.form == SignatureForm::Bundle},
                              {"blob", base64_encode(proof.blob)},
                              {"signature", base64_encode(proof.signature)},
                              {"certificate", base64_encode(proof.annotations.certificate)},
                              {"logEntry", base64_encode(proof.annotations.log_entry)},
                              {"timestamp", base64_encode(proof.annotations.timestamp)}};
  return json::dump(document);
}

Result<CosignProof> parse_proof(std::string_view text) {
  const auto corrupt = [] { return fail(ErrorKind::Corrupt, "is not the proof of a signature"); };
  const Result<json::Value> parsed = json::parse(text);
  if (!parsed || json::int_at(*parsed, {"version"}) != kProofVersion) return corrupt();
  const json::Array* const manifests = json::array_at(*parsed, {"manifests"});
  std::optional<std::string> blob = base64_decode(json::string_at(*parsed, {"blob"}));
  std::optional<std::string> signature = base64_decode(json::string_at(*parsed, {"signature"}));
  // Proofs by keys that an earlier version wrote have none of these: they are empty.
  std::optional<std::string> certificate = base64_decode(json::string_at(*parsed, {"certificate"}));
  std::optional<std::string> log_entry = base64_decode(json::string_at(*parsed, {"logEntry"}));
  std::optional<std::string> timestamp = base64_decode(json::string_at(*parsed, {"timestamp"}));
  if (manifests == nullptr || !blob || !signature || !certificate || !log_entry || !timestamp) {
    return corrupt();
  }
  CosignProof proof{.manifests = {},
                    .form = json::bool_at(*parsed, {"bundle"}) ? SignatureForm::Bundle
                                                               : SignatureForm::SimpleSigning,
                    .blob = *std::move(blob),
                    .signature = *std::move(signature),
                    .annotations = {.certificate = *std::move(certificate),
                                    .log_entry = *std::move(log_entry),
                                    .timestamp = *std::move(timestamp)}};
  for (const json::Value& one : *manifests) {
    std::optional<std::string> manifest =
        one.is_string() ? base64_decode(one.get_string()) : std::nullopt;
    if (!manifest) return corrupt();
    proof.manifests.push_back(*std::move(manifest));
  }
  return proof;
}

}  // namespace hangar::modules
