// The server that a URL names: its host and port, without a user.
//
// All URLs that hangar checks are read by this parser. It accepts only text that every other parser
// reads in the same way, so that the checked server is the one that libcurl connects to, and the
// one that a certificate or an administrator's rule names.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hangar::http {

struct Authority {
  enum class Kind : std::uint8_t { Name, Ipv4, Ipv6 };

  Kind kind = Kind::Name;
  // In lower case: a name, with the dot at its end if it has one; a.b.c.d; or an IPv6 address
  // without brackets, in its shortest form.
  std::string host;
  std::optional<std::uint16_t> port;  // Never 0.

  // "host", "host:8443", "[fd00::1]:8443".
  [[nodiscard]] std::string to_string() const;
  bool operator==(const Authority&) const = default;
};

// "acme.example.org", "acme.example.org.:8443", "10.0.0.7:80", "[fd00::1]". InvalidInput says which
// part is wrong; it repeats nothing of the text, which may contain a password. Refused are
// - a user, escapes, and other characters than those of host names (names in other scripts are
//   written in Punycode, xn--...);
// - labels of a name that are empty, too long, or begin or end with a dash;
// - IPv4 addresses in another form than a.b.c.d (127.1, 0x7f000001), which other URL
//   parsers accept;
// - ports with a sign or a leading zero, 0, and above 65535.
[[nodiscard]] Result<Authority> parse_authority(std::string_view text);

}  // namespace hangar::http
