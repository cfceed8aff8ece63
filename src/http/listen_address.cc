#include "http/listen_address.h"

#include "base/number.h"
#include "base/result.h"

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace hangar::http {

Result<ListenAddress> parse_listen_address(std::string_view text) {
  const auto invalid = [text] {
    return fail(
        ErrorKind::InvalidInput,
        fmt::format("\"{}\" is not an address to listen at: write for example 127.0.0.1:8080 "
                    "or :8080",
                    text));
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return invalid();
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  const auto port = parse_number<std::uint16_t>(digits);
  if (!port) return invalid();
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return ListenAddress{.address = host.empty() ? "0.0.0.0" : std::string(host), .port = *port};
}

}  // namespace hangar::http
