// The address of a server, as flags give it.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace hangar::http {

struct ListenAddress {
  std::string address;
  std::uint16_t port = 0;
};
// "127.0.0.1:8080", "[::1]:8080", ":8080" (every interface). The InvalidInput says what would
// be valid.
[[nodiscard]] Result<ListenAddress> parse_listen_address(std::string_view text);

}  // namespace hangar::http
