// The certificates of the webhook server: an authority of hangar's own, a certificate that it has
// signed, and when which of them is made anew. Pure but for random keys.
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
// For a server of these names (DNS names and IP addresses). Requires one name at least.
[[nodiscard]] Result<KeyPair> issue(const KeyPair& authority, const std::vector<std::string>& names,
                                    WallTime now);

struct CertificateFacts {
  WallTime not_before;
  WallTime not_after;
};
// Of the first certificate in `pem`. InvalidInput when there is none.
[[nodiscard]] Result<CertificateFacts> read_certificate(std::string_view pem);
// Whether the first certificate of `pem` is for all these names and signed by one in
// `authorities_pem`.
[[nodiscard]] bool is_for(std::string_view pem, const std::vector<std::string>& names,
                          std::string_view authorities_pem);
// Whether `key_pem` is the key of the first certificate in `pem`.
[[nodiscard]] bool has_key(std::string_view pem, std::string_view key_pem);

// What the Secret of a host holds that makes its certificates itself.
struct Issued {
  KeyPair server;
  std::string authorities_pem;    // Whom the API server is to trust: the newest first.
  std::string authority_key_pem;  // Of the newest.
};

enum class Renewal : std::uint8_t {
  None,
  Server,     // A new certificate by the same authority.
  Authority,  // A new authority beside the old one, which stays trusted. The server's certificate
              // stays for now: nobody trusts the new one yet.
  All,        // What is there is of no use.
};
[[nodiscard]] Renewal renewal_of(const Issued& issued, const std::vector<std::string>& names,
                                 WallTime now);
[[nodiscard]] Result<Issued> renew(const Issued& issued, Renewal renewal,
                                   const std::vector<std::string>& names, WallTime now);

inline constexpr std::chrono::days kAuthorityLife{3650};
inline constexpr std::chrono::days kServerLife{365};
// A certificate is renewed that long before it expires.
inline constexpr std::chrono::days kRenewBefore{120};
// An authority signs nothing before it has been trusted for that long.
inline constexpr std::chrono::minutes kTrustedFirst{10};

}  // namespace hangar::admission
