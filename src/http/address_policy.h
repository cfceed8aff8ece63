// Which addresses a request may reach. The policy judges each address that a name resolves to,
// because a URL does not say where it leads.
#pragma once

#include "base/result.h"
#include "http/internal/network.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::http {

class AddressPolicy {
 public:
  // Allows everything.
  AddressPolicy() = default;

  // For URLs of administrators: allows everything but link-local addresses and those at which
  // clouds serve credentials to their machines.
  [[nodiscard]] static AddressPolicy no_metadata();

  // For URLs of strangers: allows addresses that the public internet routes, without this host's
  // own addresses.
  [[nodiscard]] static AddressPolicy public_only();
  // The same, and in addition the networks that `allowed` names.
  //   private       10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 100.64.0.0/10 and fc00::/7, but none
  //                 of this host's own addresses
  //   10.96.0.0/12  any network or address; but a link-local address or the metadata service of a
  //                 cloud is allowed only when that very address is named
  // InvalidInput for anything else.
  [[nodiscard]] static Result<AddressPolicy> public_and(std::span<const std::string> allowed);

  // `address` in text form; anything else is refused. An IPv6 address that stands for an IPv4 one
  // (IPv4-mapped, NAT64, 6to4) is judged as that IPv4 address.
  [[nodiscard]] bool allows(std::string_view address) const;
  // Removes the addresses that allows() refuses. The host's own addresses are read once for all.
  void remove_refused(std::vector<std::string>& addresses) const;

 private:
  class OwnAddresses;
  [[nodiscard]] bool allows(std::string_view address, OwnAddresses& own) const;

  enum class Scope : std::uint8_t { Anything, NoMetadata, Public };
  Scope scope_ = Scope::Anything;
  bool allows_private_ = false;
  std::vector<internal::Network> networks_;  // The networks that the administrator named.
};

}  // namespace hangar::http
