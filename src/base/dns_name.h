// The names that Kubernetes gives objects.
#pragma once

#include <cstddef>
#include <string_view>

namespace hangar {

inline constexpr std::size_t kDnsNameBytesMax = 253;

// RFC 1123 as Kubernetes reads it (IsDNS1123Subdomain): lower case letters, digits and '-' between
// dots, each part beginning and ending with a letter or digit.
[[nodiscard]] bool is_dns_subdomain(std::string_view text);

}  // namespace hangar
