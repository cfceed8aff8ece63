#include "http/authority.h"

#include "base/number.h"
#include "base/result.h"
#include "base/text.h"
#include "http/internal/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::http {

namespace {

// As DNS has them; the dot that ends a full name is not counted.
constexpr std::size_t kNameBytesMax = 253;
constexpr std::size_t kLabelBytesMax = 63;

bool is_digit(char character) {
  return character >= '0' && character <= '9';
}

bool is_hex_digit(char character) {
  return is_digit(character) || (character >= 'a' && character <= 'f');
}

bool is_label(std::string_view label) {
  return !label.empty() && label.size() <= kLabelBytesMax && !label.starts_with('-') &&
         !label.ends_with('-') && std::ranges::all_of(label, [](char character) {
           return (character >= 'a' && character <= 'z') || is_digit(character) ||
                  character == '-' || character == '_';
         });
}

// URL parsers take a host whose last label is a number for an IPv4 address.
bool is_number(std::string_view label) {
  const bool is_hex = label.starts_with("0x");
  return is_hex ? std::ranges::all_of(label.substr(2), is_hex_digit)
                : std::ranges::all_of(label, is_digit);
}

bool is_name(std::string_view host) {
  if (host.ends_with('.')) host.remove_suffix(1);
  if (host.empty() || host.size() > kNameBytesMax) return false;
  while (true) {
    const std::size_t end = std::min(host.find('.'), host.size());
    const std::string_view label = host.substr(0, end);
    if (!is_label(label)) return false;
    if (end == host.size()) return !is_number(label);
    host.remove_prefix(end + 1);
  }
}

std::optional<std::uint16_t> parse_port(std::string_view digits) {
  if (digits.starts_with('0')) return std::nullopt;
  return parse_number<std::uint16_t>(digits);
}

// Without the name of a network interface ("%eth0"), which only this machine knows.
std::optional<std::string> parse_ipv6(std::string_view address) {
  const bool is_plain = std::ranges::all_of(address, [](char character) {
    return is_hex_digit(character) || character == ':' || character == '.';
  });
  return is_plain ? internal::plain_ipv6(address) : std::nullopt;
}

std::unexpected<Error> refused(const char* why) {
  return fail(ErrorKind::InvalidInput, why);
}

}  // namespace

std::string Authority::to_string() const {
  std::string text = kind == Kind::Ipv6 ? fmt::format("[{}]", host) : host;
  if (port) text += fmt::format(":{}", *port);
  return text;
}

Result<Authority> parse_authority(std::string_view text) {
  if (text.contains('@')) return refused("the host has a user before it");
  const bool is_bracketed = text.starts_with('[');
  // Without a closing bracket the host is empty, and the rest is not a port.
  const std::size_t end = is_bracketed ? text.find(']') + 1 : std::min(text.find(':'), text.size());
  Authority authority{.host = to_lower(text.substr(0, end))};
  if (const std::string_view rest = text.substr(end); !rest.empty()) {
    authority.port = rest.starts_with(':') ? parse_port(rest.substr(1)) : std::nullopt;
    if (!authority.port) return refused("the port is not a number from 1 to 65535");
  }
  if (is_bracketed) {
    std::optional<std::string> address =
        parse_ipv6(std::string_view(authority.host).substr(1, authority.host.size() - 2));
    if (!address) return refused("the host in brackets is not an IPv6 address");
    authority.kind = Authority::Kind::Ipv6;
    authority.host = *std::move(address);
    return authority;
  }
  if (internal::plain_ipv4(authority.host) == authority.host) {
    authority.kind = Authority::Kind::Ipv4;
  } else if (!is_name(authority.host)) {
    return refused(
        "the host is neither a name (in other scripts: xn--...) nor an address (a.b.c.d, or IPv6 "
        "in brackets)");
  }
  return authority;
}

}  // namespace hangar::http
