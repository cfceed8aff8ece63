// Which addresses a request may reach, decided about each address that a name has, after it was
// resolved: a URL says nothing about where it leads.
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
  // Everything.
  AddressPolicy() = default;

  // For URLs of administrators: everything but link-local addresses and those at which clouds serve
  // credentials to their machines.
  [[nodiscard]] static AddressPolicy no_metadata();

  // For URLs of strangers: what the public internet routes, without this host's own addresses.
  [[nodiscard]] static AddressPolicy public_only();
  // The same, and what `allowed` names beyond that.
  //   private       10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 100.64.0.0/10 and fc00::/7, but none
  //                 of this host's own addresses
  //   10.96.0.0/12  a network or an address, whatever it is; except that link-local addresses and
  //                 metadata services of clouds are allowed only by their very address
  // InvalidInput for anything else.
  [[nodiscard]] static Result<AddressPolicy> public_and(std::span<const std::string> allowed);

  // `address` in text form; anything else is refused. An IPv6 address that stands for an IPv4 one
  // (IPv4-mapped, NAT64, 6to4) is judged as that.
  [[nodiscard]] bool allows(std::string_view address) const;

 private:
  enum class Scope : std::uint8_t { Anything, NoMetadata, Public };
  Scope scope_ = Scope::Anything;
  bool allows_private_ = false;
  std::vector<internal::Network> networks_;  // Named by the administrator.
};

}  // namespace hangar::http
