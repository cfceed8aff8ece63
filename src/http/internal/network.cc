#include "http/internal/network.h"

#include "base/number.h"

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/address_v4.hpp>
#include <boost/asio/ip/address_v6.hpp>
#include <boost/system/error_code.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace hangar::http::internal {

namespace {

namespace ip = boost::asio::ip;

constexpr unsigned kBits = 128;
constexpr unsigned kMappedBits = 96;  // Prefix of an IPv4-mapped address.

struct Parsed {
  AddressBytes bytes;
  bool is_v4 = false;
};

std::optional<Parsed> parse(std::string_view text) {
  boost::system::error_code error;
  const ip::address address = ip::make_address(text, error);
  if (error) return std::nullopt;
  if (address.is_v4()) {
    return Parsed{.bytes = ip::make_address_v6(ip::v4_mapped, address.to_v4()).to_bytes(),
                  .is_v4 = true};
  }
  return Parsed{.bytes = address.to_v6().to_bytes()};
}

}  // namespace

std::optional<AddressBytes> parse_address(std::string_view text) {
  const std::optional<Parsed> parsed = parse(text);
  if (!parsed) return std::nullopt;
  return parsed->bytes;
}

std::optional<std::string> plain_ipv4(std::string_view text) {
  boost::system::error_code error;
  const ip::address_v4 address = ip::make_address_v4(text, error);
  if (error) return std::nullopt;
  return address.to_string();
}

std::optional<std::string> plain_ipv6(std::string_view text) {
  boost::system::error_code error;
  const ip::address_v6 address = ip::make_address_v6(text, error);
  if (error) return std::nullopt;
  return address.to_string();
}

bool Network::contains(const AddressBytes& address) const {
  unsigned left = prefix_length;
  for (std::size_t index = 0; left > 0; ++index) {
    const unsigned bits = left < 8 ? left : 8;
    if (((address.at(index) ^ bytes.at(index)) >> (8 - bits)) != 0) return false;
    left -= bits;
  }
  return true;
}

std::optional<Network> parse_network(std::string_view text) {
  const std::size_t slash = text.find('/');
  const std::optional<Parsed> parsed = parse(text.substr(0, slash));
  if (!parsed) return std::nullopt;
  if (slash == std::string_view::npos)
    return Network{.bytes = parsed->bytes, .prefix_length = kBits};
  const auto length = parse_number<unsigned>(text.substr(slash + 1));
  const unsigned offset = parsed->is_v4 ? kMappedBits : 0;
  if (!length || *length > kBits - offset) return std::nullopt;
  return Network{.bytes = parsed->bytes, .prefix_length = offset + *length};
}

}  // namespace hangar::http::internal
