#include "http/address_policy.h"

#include "base/result.h"
#include "http/internal/network.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::http {

namespace {

using internal::AddressBytes;
using internal::Network;
using internal::parse_address;
using internal::parse_network;

using Networks = std::vector<Network>;

Networks networks(std::initializer_list<std::string_view> texts) {
  Networks parsed;
  for (const std::string_view text : texts)
    parsed.push_back(parse_network(text).value());
  return parsed;
}

bool contain(const Networks& ranges, const AddressBytes& address) {
  return std::ranges::any_of(ranges, [&](const Network& one) { return one.contains(address); });
}

// Link-local addresses, and the others at which clouds serve credentials: AWS over IPv6, Alibaba,
// Oracle, and Azure's agent, whose address is a public one.
bool is_guarded(const AddressBytes& address) {
  static const Networks ranges = networks({"169.254.0.0/16", "fe80::/10", "fd00:ec2::/32",
                                           "100.100.100.200", "192.0.0.192", "168.63.129.16"});
  return contain(ranges, address);
}

bool is_private(const AddressBytes& address) {
  static const Networks ranges =
      networks({"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"});
  return contain(ranges, address);
}

bool is_v4(const AddressBytes& address) {
  static const Network mapped = parse_network("::ffff:0:0/96").value();
  return mapped.contains(address);
}

// The registries of special-purpose addresses of the IANA, without the private ones.
bool is_public(const AddressBytes& address) {
  static const Networks special_v4 = networks({
      "0.0.0.0/8",        // This network.
      "127.0.0.0/8",      // Loopback.
      "169.254.0.0/16",   // Link-local.
      "192.0.0.0/24",     // Protocol assignments.
      "192.0.2.0/24",     // Documentation.
      "192.88.99.0/24",   // 6to4 relays.
      "198.18.0.0/15",    // Benchmarks.
      "198.51.100.0/24",  // Documentation.
      "203.0.113.0/24",   // Documentation.
      "224.0.0.0/3",      // Multicast, reserved, broadcast.
  });
  static const Network global_unicast = parse_network("2000::/3").value();
  static const Networks special_v6 = networks({
      "2001::/23",      // Protocol assignments, Teredo, ORCHID.
      "2001:db8::/32",  // Documentation.
      "3fff::/20",      // Documentation.
  });
  if (is_private(address) || is_guarded(address)) return false;
  if (is_v4(address)) return !contain(special_v4, address);
  return global_unicast.contains(address) && !contain(special_v6, address);
}

// The IPv4 address that an IPv6 address stands for, if any.
AddressBytes embedded(const AddressBytes& address) {
  struct Form {
    Network network;
    std::size_t offset;
  };
  static const std::array<Form, 3> forms = {
      Form{parse_network("64:ff9b::/96").value(), 12},  // NAT64.
      Form{parse_network("2002::/16").value(), 2},      // 6to4.
      Form{parse_network("::/96").value(), 12},         // IPv4-compatible; ::1 is not one of them.
  };
  for (const Form& form : forms) {
    if (!form.network.contains(address)) continue;
    AddressBytes mapped = parse_address("::ffff:0:0").value();
    std::copy_n(address.begin() + static_cast<std::ptrdiff_t>(form.offset), 4, mapped.begin() + 12);
    return mapped;
  }
  return address;
}

// The addresses of this machine (or pod); std::nullopt if the system cannot list them.
std::optional<std::vector<AddressBytes>> read_own_addresses() {
  ifaddrs* found = nullptr;
  if (::getifaddrs(&found) != 0) return std::nullopt;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owned(found, &::freeifaddrs);
  std::vector<AddressBytes> addresses;
  for (const ifaddrs* one = found; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr) continue;
    AddressBytes bytes{};
    if (one->ifa_addr->sa_family == AF_INET) {
      bytes = parse_address("::ffff:0:0").value();
      const auto& v4 = reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr;
      std::memcpy(bytes.data() + 12, &v4, 4);
    } else if (one->ifa_addr->sa_family == AF_INET6) {
      const auto& v6 = reinterpret_cast<const sockaddr_in6*>(one->ifa_addr)->sin6_addr;
      std::memcpy(bytes.data(), &v6, bytes.size());
    } else {
      continue;
    }
    addresses.push_back(bytes);
  }
  return addresses;
}

}  // namespace

// Read when an address is first compared with them: on a node, that takes as many steps as it has
// interfaces.
class AddressPolicy::OwnAddresses {
 public:
  // If the system cannot list its addresses, every address counts as its own.
  [[nodiscard]] bool contain(const AddressBytes& address) {
    if (!addresses_) addresses_.emplace(read_own_addresses());
    const std::optional<std::vector<AddressBytes>>& known = *addresses_;
    return !known || std::ranges::find(*known, address) != known->end();
  }

 private:
  std::optional<std::optional<std::vector<AddressBytes>>> addresses_;
};

AddressPolicy AddressPolicy::no_metadata() {
  AddressPolicy policy;
  policy.scope_ = Scope::NoMetadata;
  return policy;
}

AddressPolicy AddressPolicy::public_only() {
  AddressPolicy policy;
  policy.scope_ = Scope::Public;
  return policy;
}

Result<AddressPolicy> AddressPolicy::public_and(std::span<const std::string> allowed) {
  AddressPolicy policy = public_only();
  for (const std::string& text : allowed) {
    if (text == "private") {
      policy.allows_private_ = true;
      continue;
    }
    const std::optional<Network> network = parse_network(text);
    if (!network) {
      return fail(
          ErrorKind::InvalidInput,
          fmt::format("\"{}\" is not a network (10.96.0.0/12), an address, or \"private\"", text));
    }
    policy.networks_.push_back(*network);
  }
  return policy;
}

bool AddressPolicy::allows(std::string_view address) const {
  OwnAddresses own;
  return allows(address, own);
}

void AddressPolicy::remove_refused(std::vector<std::string>& addresses) const {
  OwnAddresses own;
  std::erase_if(addresses, [&](const std::string& address) { return !allows(address, own); });
}

bool AddressPolicy::allows(std::string_view address, OwnAddresses& own) const {
  if (scope_ == Scope::Anything) return true;
  const std::optional<AddressBytes> written = parse_address(address);
  if (!written) return false;
  const AddressBytes meant = embedded(*written);
  if (scope_ == Scope::NoMetadata) return !is_guarded(meant);
  const bool is_named = std::ranges::any_of(networks_, [&](const Network& one) {
    return (one.contains(meant) || one.contains(*written)) &&
           (!is_guarded(meant) || one.is_one_address());
  });
  if (is_named) return true;
  const bool is_allowed =
      is_public(meant) || (allows_private_ && is_private(meant) && !is_guarded(meant));
  return is_allowed && !own.contain(meant);
}

}  // namespace hangar::http
