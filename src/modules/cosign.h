// Signatures that cosign makes for an artifact in a registry: reads a registry's documents about
// them, and verifies a signature. No I/O.
//
// A signature is about the digest of a manifest, in one of two forms:
//   - simple signing: a layer of a signature's manifest is a JSON text that names the digest; the
//     layer's annotation is the signature over these bytes. The manifest is behind the tag
//     sha256-<hex>.sig, or a referrer of the signed one.
//   - a Sigstore bundle (cosign 3): the layer is a DSSE envelope with an in-toto statement whose
//     subject is the digest. The manifest is a referrer.
// Signers decide who made a signature: those with keys look at nothing else; keyless ones also look
// at the certificate and the log entry that come with it. Bundles are parsed before their signature
// is verified, simple signing payloads only after it.
#pragma once

#include "base/result.h"
#include "json/value.h"
#include "modules/oci_manifest.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::modules {

// A registry may list any number of signatures for one artifact. At most this many manifests are
// read, and at most this many signatures of them.
inline constexpr std::size_t kSignatureManifestsMax = 16;
inline constexpr std::size_t kSignaturesMax = 32;
// A payload has some 250 bytes plus annotations of the signer; a bundle may also contain entries of
// a transparency log.
inline constexpr std::uint64_t kSignatureBytesMax = std::uint64_t{256} * 1024;
// The answer of the referrers API: some 500 bytes for each referrer.
inline constexpr std::uint64_t kReferrersBytesMax = std::uint64_t{1024} * 1024;
// Each annotation of a signature. A certificate has some 2 kB, a log entry 6 kB.
inline constexpr std::size_t kAnnotationBytesMax = std::size_t{64} * 1024;

// The annotations that cosign adds to a keyless signature: untrusted text. A member is empty if its
// annotation is absent.
struct KeylessAnnotations {
  std::string certificate;  // In PEM.
  std::string log_entry;    // JSON: an entry of a transparency log, and the log's promise.
  std::string timestamp;    // JSON: a token of a timestamp authority (RFC 3161).

  bool operator==(const KeylessAnnotations&) const = default;
};

// The unverified signature and the data that came with it. Valid for one call.
struct Claim {
  std::string_view bytes;  // The bytes that the signature is over.
  std::string_view signature;
  // The content of the bytes: the same bytes, or the payload of a bundle's envelope.
  std::string_view payload;
  // One of them is set: of simple signing the annotations, of a bundle its verificationMaterial.
  const KeylessAnnotations* annotations = nullptr;
  const json::Value* material = nullptr;
};

// The signers that one rule accepts; an implementation knows how to verify their signatures. Any
// thread.
class Signers {
 public:
  Signers() = default;
  Signers(const Signers&) = delete;
  Signers& operator=(const Signers&) = delete;
  virtual ~Signers() = default;

  // Equal for equal sets of signers only; letters and digits.
  [[nodiscard]] virtual std::string id() const = 0;
  // The signer that made the signature: "one of the rule's keys". Denied or InvalidInput with the
  // reason why no signer of the set made it, worded to follow "because".
  [[nodiscard]] virtual Result<std::string> find_signer(const Claim& claim) const = 0;
  // The remedy for an artifact without such a signature: "sign it with ...".
  [[nodiscard]] virtual std::string advice() const = 0;
};

enum class SignatureForm : std::uint8_t { SimpleSigning, Bundle };

// A signature that a manifest lists.
struct ListedSignature {
  SignatureForm form = SignatureForm::SimpleSigning;
  Descriptor blob;                      // At most kSignatureBytesMax.
  std::string signature;                // Decoded. Of a bundle empty: it is in the blob.
  KeylessAnnotations annotations = {};  // Each at most kAnnotationBytesMax.
};

// The tag under which cosign stores simple signing signatures of that digest, and the one under
// which clients store the list of referrers if a registry has no API for them.
[[nodiscard]] std::string signature_tag(std::string_view digest);
[[nodiscard]] std::string referrers_tag(std::string_view digest);

// The manifests in a list of referrers that may have signatures; at most kSignatureManifestsMax.
// InvalidInput when it is not an index.
[[nodiscard]] Result<std::vector<Descriptor>> read_referrers(std::string_view index);

// The signatures in a manifest; at most kSignaturesMax. Ignores layers of other types, without a
// signature, or too large. InvalidInput when it is not a manifest.
[[nodiscard]] Result<std::vector<ListedSignature>> read_signatures(std::string_view manifest);

// Everything that is needed to verify, without a registry, that a module was signed.
struct CosignProof {
  // The signed manifest; if it is an index, also the manifest to which it leads.
  std::vector<std::string> manifests;
  SignatureForm form = SignatureForm::SimpleSigning;
  std::string blob;
  std::string signature;
  KeylessAnnotations annotations = {};  // Of simple signing.

  bool operator==(const CosignProof&) const = default;
};

// A proof, and the result of verify_proof() for it.
struct VerifiedProof {
  CosignProof proof;
  std::string layer;
};

// The digest of the layer that is the module. Denied when the signature is by none of the signers,
// or for another artifact; InvalidInput for a malformed signature or manifest.
[[nodiscard]] Result<std::string> verify_proof(const CosignProof& proof, const Signers& signers);

// For a file. A proof that was read from a file proves nothing before it is verified.
[[nodiscard]] std::string to_text(const CosignProof& proof);
// Corrupt.
[[nodiscard]] Result<CosignProof> parse_proof(std::string_view text);

}  // namespace hangar::modules
