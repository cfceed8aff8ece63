#include "sigstore/keyless.h"

#include "base/base64.h"
#include "base/digest.h"
#include "base/invalid.h"
#include "base/result.h"
#include "base/time.h"
#include "json/value.h"
#include "modules/cosign.h"
#include "schematics/keys.h"
#include "sigstore/identity.h"
#include "sigstore/internal/certificate.h"
#include "sigstore/internal/openssl.h"
#include "sigstore/internal/timestamp.h"
#include "sigstore/log_entry.h"
#include "sigstore/trust_root.h"

#include <fmt/format.h>
#include <openssl/types.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::sigstore {

namespace {

// The material of a signature, parsed and not yet verified.
struct Evidence {
  internal::CertificatePtr certificate;
  std::vector<LogEntry> entries;
  std::vector<std::string> timestamps;  // Responses in DER.
};

std::unexpected<Error> without_certificate() {
  return fail(ErrorKind::Denied, "it has no certificate: it was made with a key");
}

std::unexpected<Error> damaged_timestamp() {
  return invalid("its timestamp is not base64");
}

Result<Evidence> evidence_in(const modules::KeylessAnnotations& annotations) {
  if (annotations.certificate.empty()) return without_certificate();
  Evidence evidence{
      .certificate = internal::read_pem(annotations.certificate), .entries = {}, .timestamps = {}};
  if (!annotations.log_entry.empty()) {
    evidence.entries.push_back(HANGAR_TRY(read_annotated_entry(annotations.log_entry)));
  }
  if (annotations.timestamp.empty()) return evidence;
  const Result<json::Value> timestamp = json::parse(annotations.timestamp);
  std::optional<std::string> response =
      timestamp ? base64_decode(json::string_at(*timestamp, {"SignedRFC3161Timestamp"}))
                : std::nullopt;
  if (!response || response->empty()) return damaged_timestamp();
  evidence.timestamps.push_back(*std::move(response));
  return evidence;
}

Result<Evidence> evidence_in(const json::Value& material) {
  const std::string_view text = json::string_at(material, {"certificate", "rawBytes"});
  if (text.empty()) return without_certificate();
  Evidence evidence{.certificate = internal::read_der(base64_decode(text).value_or(std::string())),
                    .entries = HANGAR_TRY(read_bundled_entries(material)),
                    .timestamps = {}};
  const json::Array* const list =
      json::array_at(material, {"timestampVerificationData", "rfc3161Timestamps"});
  if (list == nullptr) return evidence;
  if (list->size() > kTimestampsMax) {
    return invalid(fmt::format("the bundle has more than {} timestamps", kTimestampsMax));
  }
  for (const json::Value& one : *list) {
    std::optional<std::string> response = base64_decode(json::string_at(one, {"signedTimestamp"}));
    if (!response || response->empty()) return damaged_timestamp();
    evidence.timestamps.push_back(*std::move(response));
  }
  return evidence;
}

// The proven times at which the signature existed. Not empty.
Result<std::vector<WallTime>> verify_times(const Evidence& evidence, const modules::Claim& claim,
                                           std::string_view certificate, const TrustRoot& root) {
  if (evidence.entries.empty()) {
    return fail(ErrorKind::Denied,
                "it has no entry of a transparency log: sign without --tlog-upload=false");
  }
  std::vector<WallTime> times;
  for (const LogEntry& entry : evidence.entries) {
    const Log* const log = find_log(root.logs, entry.log_id);
    if (log == nullptr) {
      return fail(ErrorKind::Denied, "its transparency log is not in the trust root's tlogs");
    }
    HANGAR_TRY(check_entry(entry, {.bytes = claim.bytes,
                                   .payload = claim.payload,
                                   .signature = claim.signature,
                                   .certificate = certificate}));
    const std::optional<WallTime> time = HANGAR_TRY(verify_entry(entry, *log));
    if (time) times.push_back(*time);
  }
  for (const std::string& response : evidence.timestamps) {
    times.push_back(HANGAR_TRY(
        internal::verify_timestamp(response, claim.signature, root.timestamp_authorities)));
  }
  if (times.empty()) {
    return fail(ErrorKind::Denied,
                "the signing time is not proven: the signature has neither a promise of the log "
                "(SignedEntryTimestamp) nor a timestamp");
  }
  return times;
}

std::string id_of(const TrustRoot& root, const std::vector<Identity>& identities) {
  std::string all = root.id;
  for (const Identity& identity : identities) {
    for (const IdentityPattern* const one : {&identity.issuer, &identity.subject}) {
      all += one->is_regexp() ? 'r' : 'e';
      all += sha256_hex(one->text());
    }
  }
  return sha256_hex(all);
}

}  // namespace

KeylessSigners::KeylessSigners(TrustRoot root, std::vector<Identity> identities)
    : root_(std::move(root)), identities_(std::move(identities)), id_(id_of(root_, identities_)) {}

Result<std::string> KeylessSigners::find_signer(const modules::Claim& claim) const {
  const internal::ErrorsForgotten forgotten;
  if (claim.annotations == nullptr && claim.material == nullptr) return without_certificate();
  const Evidence evidence =
      HANGAR_TRY(claim.annotations != nullptr ? evidence_in(*claim.annotations)
                                              : evidence_in(*claim.material));
  X509* const leaf = evidence.certificate.get();
  if (leaf == nullptr) return invalid("its certificate is damaged");
  const schematics::PublicKey key = HANGAR_TRY(internal::key_of(leaf));
  if (!key.has_signed_bytes(claim.bytes, claim.signature)) {
    return fail(ErrorKind::Denied, "the key of its certificate has not made it");
  }
  const std::string certificate = internal::der_of_certificate(leaf);
  const std::vector<WallTime> times = HANGAR_TRY(verify_times(evidence, claim, certificate, root_));
  for (const WallTime time : times) {
    const internal::CertificatePtr issuer =
        HANGAR_TRY(internal::verify_chain(leaf, root_.certificate_authorities, time));
    HANGAR_TRY(internal::verify_certificate_log(leaf, issuer.get(), root_.certificate_logs));
  }
  const internal::CertifiedIdentity identity = HANGAR_TRY(internal::identity_of(leaf));
  const bool is_accepted = std::ranges::any_of(identities_, [&identity](const Identity& one) {
    return one.issuer.fits(identity.issuer) && one.subject.fits(identity.subject);
  });
  if (!is_accepted) {
    return fail(
        ErrorKind::Denied,
        fmt::format("its identity (subject {}, issuer {}) matches none of the rule's identities",
                    identity.subject, identity.issuer));
  }
  return "one of the rule's identities";
}

std::string KeylessSigners::advice() const {
  return "sign it with `cosign sign` as one of the rule's identities";
}

}  // namespace hangar::sigstore
