#include "tenants/outbound_server.h"

#include "base/result.h"
#include "http/authority.h"

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::tenants {

namespace {

Result<http::Authority> read(std::string_view text) {
  http::Authority authority = HANGAR_TRY(http::parse_authority(text));
  if (authority.kind == http::Authority::Kind::Ipv6) {
    return fail(ErrorKind::InvalidInput, "the host is an IPv6 address: use a name");
  }
  if (authority.host.ends_with('.')) authority.host.pop_back();
  return authority;
}

OutboundServer to_server(http::Authority authority) {
  return {.host = std::move(authority.host), .port = authority.port.value_or(kHttpsPort)};
}

}  // namespace

std::string OutboundServer::to_string() const {
  return port == kHttpsPort ? host : fmt::format("{}:{}", host, port);
}

Result<OutboundServer> parse_outbound_server(std::string_view authority) {
  return to_server(HANGAR_TRY(read(authority)));
}

Result<OutboundPattern> OutboundPattern::parse(std::string_view text) {
  OutboundPattern pattern;
  pattern.is_wildcard_ = text.starts_with("*.");
  if (pattern.is_wildcard_) text.remove_prefix(2);
  http::Authority authority = HANGAR_TRY(read(text));
  if (pattern.is_wildcard_ && authority.kind != http::Authority::Kind::Name) {
    return fail(ErrorKind::InvalidInput, "a wildcard stands before a name only");
  }
  pattern.server_ = to_server(std::move(authority));
  return pattern;
}

bool OutboundPattern::matches(const OutboundServer& server) const {
  if (!is_wildcard_) return server == server_;
  if (server.port != server_.port) return false;
  const std::string_view host = server.host;
  const std::size_t dot = host.find('.');
  return dot != std::string_view::npos && host.substr(dot + 1) == server_.host;
}

std::string OutboundPattern::to_string() const {
  return (is_wildcard_ ? "*." : "") + server_.to_string();
}

}  // namespace hangar::tenants
