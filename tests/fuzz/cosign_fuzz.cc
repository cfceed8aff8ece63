// A registry's possible answers about signatures, and signed bytes that say anything.

#include "base/assert.h"
#include "base/result.h"
#include "modules/cosign.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace {

using namespace hangar::modules;  // NOLINT(google-build-using-namespace): a program.

constexpr std::size_t kDigestBytes = 7 + 64;  // "sha256:" and its digits.

void check(const Descriptor& descriptor) {
  HANGAR_ASSERT(
      descriptor.digest.size() == kDigestBytes &&
          descriptor.digest.find_first_not_of("sha256:0123456789abcdef") == std::string::npos,
      "a digest is safe in a path");
}

// The keys of somebody who signs everything: what is parsed after the signature is reached, too.
class SignsAll final : public Signers {
 public:
  [[nodiscard]] std::string id() const override { return "all"; }
  [[nodiscard]] hangar::Result<std::string> find_signer(const Claim&) const override {
    return "anybody";
  }
  [[nodiscard]] std::string advice() const override { return {}; }
};

class SignsNothing final : public Signers {
 public:
  [[nodiscard]] std::string id() const override { return "none"; }
  [[nodiscard]] hangar::Result<std::string> find_signer(const Claim&) const override {
    return hangar::fail(hangar::ErrorKind::Denied, "by nobody");
  }
  [[nodiscard]] std::string advice() const override { return {}; }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);

  if (const auto listed = read_referrers(bytes)) {
    HANGAR_ASSERT(listed->size() <= kSignatureManifestsMax, "bounded");
    for (const Descriptor& one : *listed)
      check(one);
  }
  if (const auto listed = read_signatures(bytes)) {
    HANGAR_ASSERT(listed->size() <= kSignaturesMax, "bounded");
    for (const ListedSignature& one : *listed) {
      check(one.blob);
      HANGAR_ASSERT(one.blob.size_bytes <= kSignatureBytesMax, "bounded");
      HANGAR_ASSERT(one.annotations.certificate.size() <= kAnnotationBytesMax &&
                        one.annotations.log_entry.size() <= kAnnotationBytesMax &&
                        one.annotations.timestamp.size() <= kAnnotationBytesMax,
                    "bounded");
    }
  }

  // The first line is the manifest, the rest what is said of it.
  const std::size_t end = bytes.find('\n');
  const std::string manifest(bytes.substr(0, end));
  const std::string blob(end == std::string_view::npos ? std::string_view()
                                                       : bytes.substr(end + 1));
  for (const SignatureForm form : {SignatureForm::SimpleSigning, SignatureForm::Bundle}) {
    const CosignProof proof{.manifests = {manifest}, .form = form, .blob = blob, .signature = "s"};
    if (const auto layer = verify_proof(proof, SignsAll()))
      HANGAR_ASSERT(layer->size() == kDigestBytes, "it leads to a layer");
    HANGAR_ASSERT(!verify_proof(proof, SignsNothing()), "nothing counts that no key has signed");
    const auto again = parse_proof(to_text(proof));
    HANGAR_ASSERT(again && *again == proof, "a proof survives its file");
  }
  if (const auto proof = parse_proof(bytes)) {
    HANGAR_ASSERT(!verify_proof(*proof, SignsNothing()), "nor what a file says");
    const auto again = parse_proof(to_text(*proof));
    HANGAR_ASSERT(again && *again == *proof, "what was read is written");
  }
  return 0;
}
