// Verifies keyless signatures: a certificate that was valid for some minutes names the signer, and
// a transparency log records that the signature was made in that time.
//
// A signature counts when all of this holds, checked against a trust root and without network:
//   - the key of its certificate made it;
//   - a log of the trust root contains it, with this certificate: its promise or an inclusion proof
//     shows that;
//   - the time is proven, by that promise or by a timestamp authority of the trust root;
//   - at each proven time the certificate, which is for code signing, leads to an authority of the
//     trust root, and a certificate log has seen it;
//   - an identity of the rule equals that of the certificate: its subject, and the OIDC issuer.
// Certificates and proofs are untrusted bytes, parsed by OpenSSL in this process, like those of TLS
// connections. Any thread.
#pragma once

#include "base/result.h"
#include "modules/cosign.h"
#include "sigstore/identity.h"
#include "sigstore/trust_root.h"

#include <cstddef>
#include <string>
#include <vector>

namespace hangar::sigstore {

// Timestamps of one signature.
inline constexpr std::size_t kTimestampsMax = 4;

class KeylessSigners final : public modules::Signers {
 public:
  KeylessSigners(TrustRoot root, std::vector<Identity> identities);

  [[nodiscard]] std::string id() const override { return id_; }
  // "one of the rule's identities".
  [[nodiscard]] Result<std::string> find_signer(const modules::Claim& claim) const override;
  [[nodiscard]] std::string advice() const override;

 private:
  const TrustRoot root_;
  const std::vector<Identity> identities_;
  const std::string id_;
};

}  // namespace hangar::sigstore
