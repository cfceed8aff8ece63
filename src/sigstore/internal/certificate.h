// Certificates of keyless signatures, as Fulcio issues them. They are untrusted until
// verify_chain() has accepted them.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "schematics/keys.h"
#include "sigstore/internal/openssl.h"
#include "sigstore/trust_root.h"

#include <openssl/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace hangar::sigstore::internal {

// Null for other bytes.
[[nodiscard]] CertificatePtr read_der(std::string_view der);
// The only certificate of a PEM text. Null for anything else.
[[nodiscard]] CertificatePtr read_pem(std::string_view pem);

[[nodiscard]] std::string der_of_certificate(const X509* certificate);
[[nodiscard]] Result<schematics::PublicKey> key_of(const X509* certificate);

// Returns the issuer of the leaf if the leaf is for code signing, was valid at that time, and
// chains to an authority of the trust root that was valid then. Denied.
[[nodiscard]] Result<CertificatePtr> verify_chain(X509* leaf,
                                                  const std::vector<Authority>& authorities,
                                                  WallTime time);

// Checks that a certificate log saw this certificate before it was issued: one of the embedded
// timestamps (RFC 6962) is for it and by a log of the trust root. Denied.
[[nodiscard]] Result<> verify_certificate_log(const X509* leaf, const X509* issuer,
                                              const std::vector<Log>& logs);

// The subject of the certificate, and the issuer that has vouched for it.
struct CertifiedIdentity {
  std::string subject;  // An e-mail address, a URI, or a name of Fulcio.
  std::string issuer;   // The URL of an OIDC issuer.
};
// Denied for a certificate that names more than one subject or none. Both are printable ASCII or
// UTF-8 without control characters, and at most kIdentityBytesMax.
[[nodiscard]] Result<CertifiedIdentity> identity_of(const X509* certificate);

// A store that trusts the authority's last certificate, at that time.
[[nodiscard]] StorePtr store_of(const Authority& authority, WallTime time);
// All of the authority's certificates.
[[nodiscard]] CertificatesPtr certificates_of(const Authority& authority);

}  // namespace hangar::sigstore::internal
