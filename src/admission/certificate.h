// The certificates of the webhook server: hangar's own authority, a server certificate that it has
// signed, and the decision when to renew each of them. Pure, except for random keys.
#pragma once

#include "base/result.h"
#include "base/time.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::admission {

struct KeyPair {
  std::string certificate_pem;
  std::string key_pem;
};

// An ECDSA key and a certificate that may sign others.
[[nodiscard]] Result<KeyPair> make_authority(WallTime now);
// A certificate for a server with these names (DNS names and IP addresses). InvalidInput without
// a name.
[[nodiscard]] Result<KeyPair> issue(const KeyPair& authority, const std::vector<std::string>& names,
                                    WallTime now);

struct CertificateFacts {
  WallTime not_before;
  WallTime not_after;
};
// Reads the first certificate in `pem`. InvalidInput if there is none.
[[nodiscard]] Result<CertificateFacts> read_certificate(std::string_view pem);
// Whether the first certificate in `pem` is for all these names and signed by an authority in
// `authorities_pem`.
[[nodiscard]] bool is_for(std::string_view pem, const std::vector<std::string>& names,
                          std::string_view authorities_pem);
// Whether `key_pem` is the key of the first certificate in `pem`.
[[nodiscard]] bool has_key(std::string_view pem, std::string_view key_pem);

// The content of the Secret of a host that issues its certificates itself.
struct Issued {
  KeyPair server;
  std::string authorities_pem;    // For the API server to trust; the newest first.
  std::string authority_key_pem;  // Key of the newest authority.
};

enum class Renewal : std::uint8_t {
  None,
  Server,     // A new certificate by the same authority.
  Authority,  // A new authority; the old one stays trusted. The server's certificate stays for now,
              // because nobody trusts the new authority yet.
  All,        // The Secret has no usable content.
};
[[nodiscard]] Renewal renewal_of(const Issued& issued, const std::vector<std::string>& names,
                                 WallTime now);
[[nodiscard]] Result<Issued> renew(const Issued& issued, Renewal renewal,
                                   const std::vector<std::string>& names, WallTime now);

inline constexpr std::chrono::days kAuthorityLife{3650};
inline constexpr std::chrono::days kServerLife{365};
// How long before it expires a certificate is renewed.
inline constexpr std::chrono::days kRenewBefore{120};
// How long clients trust an authority before it signs a certificate.
inline constexpr std::chrono::minutes kTrustedFirst{10};

}  // namespace hangar::admission
