#include "tenants/outbound_server.h"

#include "base/result.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace hangar::tenants {

namespace {

// As DNS has them.
constexpr std::size_t kNameBytesMax = 253;
constexpr std::size_t kLabelBytesMax = 63;

bool is_digit(char character) {
  return character >= '0' && character <= '9';
}

bool is_label(std::string_view label) {
  return !label.empty() && label.size() <= kLabelBytesMax && !label.starts_with('-') &&
         !label.ends_with('-') && std::ranges::all_of(label, [](char character) {
           return (character >= 'a' && character <= 'z') || is_digit(character) ||
                  character == '-' || character == '_';
         });
}

std::optional<unsigned> parse_decimal(std::string_view text, unsigned most) {
  unsigned number = 0;
  const bool has_more_zeros = text.size() > 1 && text.starts_with('0');
  if (text.empty() || has_more_zeros || !std::ranges::all_of(text, is_digit)) return std::nullopt;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc() || end != text.data() + text.size() || number > most) {
    return std::nullopt;
  }
  return number;
}

bool is_ipv4(std::string_view host) {
  constexpr unsigned kByteMax = 255;
  for (int part = 0; part < 4; ++part) {
    const std::size_t end = std::min(host.find('.'), host.size());
    if (!parse_decimal(host.substr(0, end), kByteMax)) return false;
    if ((end == host.size()) != (part == 3)) return false;
    host.remove_prefix(std::min(end + 1, host.size()));
  }
  return true;
}

bool is_name(std::string_view host) {
  if (host.empty() || host.size() > kNameBytesMax) return false;
  while (true) {
    const std::size_t end = std::min(host.find('.'), host.size());
    const std::string_view label = host.substr(0, end);
    if (!is_label(label)) return false;
    // URL parsers take such a host for an IPv4 address in an unusual form: 0x7f000001, 127.1.
    if (end == host.size()) return !is_digit(label.front());
    host.remove_prefix(end + 1);
  }
}

}  // namespace

std::string OutboundServer::to_string() const {
  return port == kHttpsPort ? host : fmt::format("{}:{}", host, port);
}

Result<OutboundServer> parse_outbound_server(std::string_view authority) {
  if (authority.contains('@')) return fail(ErrorKind::InvalidInput, "the URL has a user");
  if (authority.starts_with('[')) {
    return fail(ErrorKind::InvalidInput, "the host is an IPv6 address: use a name");
  }
  OutboundServer server;
  const std::size_t colon = std::min(authority.find(':'), authority.size());
  server.host = to_lower(authority.substr(0, colon));
  if (server.host.ends_with('.')) server.host.pop_back();
  if (colon < authority.size()) {
    constexpr unsigned kPortMax = 65'535;
    const std::optional<unsigned> port = parse_decimal(authority.substr(colon + 1), kPortMax);
    if (!port || *port == 0) return fail(ErrorKind::InvalidInput, "the port is not a number");
    server.port = static_cast<std::uint16_t>(*port);
  }
  if (!is_ipv4(server.host) && !is_name(server.host)) {
    return fail(ErrorKind::InvalidInput,
                "the host is neither a name (in other scripts: xn--...) nor an address a.b.c.d");
  }
  return server;
}

Result<OutboundPattern> OutboundPattern::parse(std::string_view text) {
  OutboundPattern pattern;
  pattern.is_wildcard_ = text.starts_with("*.");
  if (pattern.is_wildcard_) text.remove_prefix(2);
  pattern.server_ = HANGAR_TRY(parse_outbound_server(text));
  if (pattern.is_wildcard_ && is_ipv4(pattern.server_.host)) {
    return fail(ErrorKind::InvalidInput, "a wildcard stands before a name only");
  }
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
