// Names of servers to which operators may send requests, as TenantPolicies list them and as URLs
// contain them.
//
// http/authority.h parses both, and a request goes to the server that it returns. So no second
// parser can take the text for another server.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace hangar::tenants {

inline constexpr std::uint16_t kHttpsPort = 443;

struct OutboundServer {
  std::string host;  // In lower case, without a dot at its end. An IPv4 address is also allowed.
  std::uint16_t port = kHttpsPort;

  // The host, and the port unless it is 443.
  [[nodiscard]] std::string to_string() const;
  bool operator==(const OutboundServer&) const = default;
};

// Parses a URL's host and port: "acme.example.org", "acme.example.org:8443". InvalidInput for a
// user, an IPv6 address, an IPv4 address in another form than a.b.c.d, and characters that host
// names do not have; names in other scripts are in Punycode (xn--...).
[[nodiscard]] Result<OutboundServer> parse_outbound_server(std::string_view authority);

// An entry of a policy's list: a server, or "*.example.org" for all names with exactly one label
// before that.
class OutboundPattern {
 public:
  [[nodiscard]] static Result<OutboundPattern> parse(std::string_view text);

  [[nodiscard]] bool matches(const OutboundServer& server) const;
  [[nodiscard]] std::string to_string() const;

  bool operator==(const OutboundPattern&) const = default;

 private:
  OutboundServer server_;
  bool is_wildcard_ = false;
};

}  // namespace hangar::tenants
