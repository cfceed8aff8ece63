// How many connections to one HTTP/2 server a Pool may have. Pure.
#pragma once

#include "http/limits.h"

#include <algorithm>
#include <cstddef>

namespace hangar::http::internal {

// `request_count`: all requests and streams that are open or wait for a connection. Returns as many
// connections as they need, so that no request waits for a long-lived stream to end, and no fewer
// than kHttp2ConnectionsMax, which a burst may open at once.
[[nodiscard]] constexpr long http2_connections_max(std::size_t request_count) {
  const auto needed = static_cast<long>(request_count / limits::kStreamsExpectedPerConnection) + 1;
  return std::clamp(needed, limits::kHttp2ConnectionsMax, limits::kHttp2ConnectionsEver);
}

}  // namespace hangar::http::internal
