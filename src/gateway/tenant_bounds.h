// How many watches and requests all operators of one tenant may have at a time.
#pragma once

#include "gateway/limits.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>

namespace hangar::gateway {

// Feeds that one tenant may open: the API itself has about eighty kinds.
inline constexpr std::size_t kFeedsPerTenantMax = 64;
// Watches and other streams (logs, proxied answers) of one tenant that go upstream one by one and
// stay open. The number of requests that one guest may have open.
inline constexpr std::size_t kOwnWatchesPerTenantMax = limits::kGatewayRequestsOpenMax;
// The same for all tenants together. Each may need a stream of a connection to the API server, and
// the number of streams is limited (http/limits.h). kStreamsKeptForFew is reserved for tenants with
// at most kFewStreams, enough for a thousand of them; the rest is enough for 250 tenants with
// kFeedsPerTenantMax feeds each. The host's own watches use the streams beyond.
inline constexpr std::size_t kStreamsOfTenantsMax = 24'000;
inline constexpr std::size_t kStreamsKeptForFew = 8'000;
inline constexpr std::size_t kFewStreams = 8;
// Other concurrent requests at the API server: of one tenant, and of all tenants. The server has a
// few hundred seats for all clients without a priority level of their own, and one list of large
// objects takes ten.
inline constexpr std::size_t kUpstreamRequestsPerTenantMax = 16;
inline constexpr std::size_t kUpstreamRequestsMax = 128;

// How many feeds (or streams) a tenant whose own bound is `most` may hold, while all tenants
// together hold `held_by_all`.
[[nodiscard]] constexpr std::size_t fair_bound(std::size_t most, std::size_t held_by_all) {
  if (held_by_all < kStreamsOfTenantsMax - kStreamsKeptForFew) return most;
  return held_by_all < kStreamsOfTenantsMax ? std::min(most, kFewStreams) : 0;
}

// The bounds of one tenant, where they are tighter than those above.
struct TenantBounds {
  std::size_t feeds = kFeedsPerTenantMax;
  std::size_t own_watches = kOwnWatchesPerTenantMax;
  std::size_t upstream_requests = kUpstreamRequestsPerTenantMax;
  // Who set the bound, for messages; empty: this host.
  std::string own_watches_set_by = {};
};
// The argument is a tenant as tenant_of() names it.
using BoundsOf = std::function<TenantBounds(const std::string& tenant)>;

}  // namespace hangar::gateway
