// Ranges of addresses. IPv4 ranges are stored as IPv4-mapped IPv6 ranges, so that there is
// one kind.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hangar::http::internal {

using AddressBytes = std::array<std::uint8_t, 16>;

// std::nullopt for text that is not an address in its usual form ("10.0.0.1", "fd00::1").
[[nodiscard]] std::optional<AddressBytes> parse_address(std::string_view text);

// The address in the form in which it is usually written ("fd00::1" for "FD00:0::01"); std::nullopt
// for text that is not an address of that family.
[[nodiscard]] std::optional<std::string> plain_ipv4(std::string_view text);
[[nodiscard]] std::optional<std::string> plain_ipv6(std::string_view text);

struct Network {
  AddressBytes bytes{};
  unsigned prefix_length = 0;  // Of 128 bits.

  [[nodiscard]] bool contains(const AddressBytes& address) const;
  [[nodiscard]] bool is_one_address() const { return prefix_length == 128; }
};

// "10.0.0.0/8", "fd00::/8", or an address, which is a network of one. std::nullopt for
// anything else.
[[nodiscard]] std::optional<Network> parse_network(std::string_view text);

}  // namespace hangar::http::internal
