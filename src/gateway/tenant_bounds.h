// How many watches and requests all operators of one tenant may have at a time.
#pragma once

#include "base/limits.h"

#include <cstddef>
#include <functional>
#include <string>

namespace hangar::gateway {

// Feeds that one tenant may open: the API itself has about eighty kinds.
inline constexpr std::size_t kFeedsPerTenantMax = 64;
// Watches and other streams (logs, proxied answers) of one tenant that go upstream one by one, each
// for as long as it takes. As many as one guest may have requests open.
inline constexpr std::size_t kOwnWatchesPerTenantMax = limits::kGuestRequestsMax;
// Other requests at the API server at a time, of one tenant and of all. The server has a few
// hundred seats for all clients without a priority level of their own, and one list of large
// objects takes ten.
inline constexpr std::size_t kUpstreamRequestsPerTenantMax = 16;
inline constexpr std::size_t kUpstreamRequestsMax = 128;
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
