// How many watches and requests one tenant may have under way in all its operators.
#pragma once

#include "base/limits.h"

#include <cstddef>
#include <functional>
#include <string>

namespace hangar::gateway {

// Kinds that one tenant has watches of, in all its operators: the API has some eighty of its own.
inline constexpr std::size_t kFeedsPerTenantMax = 64;
// Of all its operators, watches and other streams (logs, proxied answers) that go upstream by
// themselves, each for as long as it takes. As many as one guest may have requests under way.
inline constexpr std::size_t kOwnWatchesPerTenantMax = limits::kGuestRequestsMax;
// Other requests at the API server at the same time, of one tenant and of all. The server has some
// hundred seats for all that are nobody special to it, and one list of large objects takes ten.
inline constexpr std::size_t kUpstreamRequestsPerTenantMax = 16;
inline constexpr std::size_t kUpstreamRequestsMax = 128;
// What one tenant may have, where that is less than the above.
struct TenantBounds {
  std::size_t feeds = kFeedsPerTenantMax;
  std::size_t own_watches = kOwnWatchesPerTenantMax;
  std::size_t upstream_requests = kUpstreamRequestsPerTenantMax;
  // Who says so, for people; empty: nobody but this host.
  std::string own_watches_set_by = {};
};
// By tenant_of().
using BoundsOf = std::function<TenantBounds(const std::string& tenant)>;

}  // namespace hangar::gateway
