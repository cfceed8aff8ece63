// What a registry may send beside a keyless signature: certificates, log entries and timestamps.

#include "base/assert.h"
#include "base/result.h"
#include "base/time.h"
#include "json/value.h"
#include "modules/cosign.h"
#include "schematics/cosign_keys.h"
#include "schematics/keys.h"
#include "sigstore/identity.h"
#include "sigstore/internal/certificate.h"
#include "sigstore/internal/timestamp.h"
#include "sigstore/keyless.h"
#include "sigstore/log_entry.h"
#include "sigstore/trust_root.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace hangar;            // NOLINT(google-build-using-namespace): a program.
using namespace hangar::sigstore;  // NOLINT(google-build-using-namespace): a program.

constexpr WallTime kTime{std::chrono::seconds(1748779200)};

// A log whose private key nobody has.
const Log& sealed_log() {
  static const Log log{
      .id = std::string(32, '\0'),
      .key = schematics::PublicKey::parse(schematics::kMadeByCosign[0].public_key).value(),
      .valid = {}};
  return log;
}

void check_certificate(internal::CertificatePtr certificate) {
  if (!certificate) return;
  X509* const leaf = certificate.get();
  const std::string der = internal::der_of_certificate(leaf);
  (void)internal::key_of(leaf);
  const auto identity = internal::identity_of(leaf);
  HANGAR_ASSERT(!identity || (is_identity(identity->subject) && is_identity(identity->issuer)),
                "an identity is safe in a status");
  HANGAR_ASSERT(!internal::verify_certificate_log(leaf, leaf, {sealed_log()}),
                "no log has seen it");
  HANGAR_ASSERT(!internal::verify_chain(leaf, {}, kTime), "there is no authority");
  // Even if the trust root has the very certificate: it has not issued itself.
  if (!der.empty()) (void)internal::verify_chain(leaf, {{.chain = {der}, .valid = {}}}, kTime);
}

void check_entry_of(const LogEntry& entry) {
  HANGAR_ASSERT(!verify_entry(entry, sealed_log()), "the log has not said it");
  (void)check_entry(entry, {.bytes = "bytes",
                            .payload = "payload",
                            .signature = "signature",
                            .certificate = "certificate"});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);

  check_certificate(internal::read_pem(bytes));
  check_certificate(internal::read_der(bytes));
  HANGAR_ASSERT(!internal::verify_timestamp(bytes, "signature", {}), "there is no authority");
  if (const auto entry = read_annotated_entry(bytes)) check_entry_of(*entry);
  if (const auto pattern = IdentityPattern::regexp(bytes)) (void)pattern->fits("ci@example.com");

  const KeylessSigners signers({.certificate_authorities = {},
                                .logs = {sealed_log()},
                                .certificate_logs = {sealed_log()},
                                .timestamp_authorities = {},
                                .id = "fuzz"},
                               {{.issuer = IdentityPattern::regexp("^.*$").value(),
                                 .subject = IdentityPattern::regexp("^.*$").value()}});
  if (const auto parsed = json::parse(bytes)) {
    if (const auto entries = read_bundled_entries(*parsed)) {
      HANGAR_ASSERT(entries->size() <= kLogEntriesMax, "bounded");
      for (const LogEntry& entry : *entries)
        check_entry_of(entry);
    }
    (void)read_trust_root(*parsed);
    HANGAR_ASSERT(!signers.find_signer({.bytes = "bytes",
                                        .signature = "signature",
                                        .payload = "payload",
                                        .material = &*parsed}),
                  "nothing counts that nobody has signed");
  }
  // The certificate, and the rest in the lines after an empty one.
  const std::size_t end = bytes.find("\n\n");
  const modules::KeylessAnnotations annotations{
      .certificate = bytes.substr(0, end),
      .log_entry = end == std::string::npos ? "" : bytes.substr(end + 2),
      .timestamp = ""};
  HANGAR_ASSERT(!signers.find_signer({.bytes = "bytes",
                                      .signature = "signature",
                                      .payload = "bytes",
                                      .annotations = &annotations}),
                "nor with annotations");
  return 0;
}
