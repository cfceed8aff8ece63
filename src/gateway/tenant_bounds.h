// How many watches one tenant may have in all its operators.
#pragma once

#include "base/limits.h"

#include <cstddef>
#include <functional>
#include <string>

namespace hangar::gateway {

// Kinds that one tenant has watches of, in all its operators: the API has some eighty of its own.
inline constexpr std::size_t kFeedsPerTenantMax = 64;
// Of all its operators, watches that go upstream by themselves: each is a stream of its own for as
// long as it takes. As many as one guest may have requests under way.
inline constexpr std::size_t kOwnWatchesPerTenantMax = limits::kGuestRequestsMax;
// What one tenant may have, where that is less than the above.
struct TenantBounds {
  std::size_t feeds = kFeedsPerTenantMax;
  std::size_t own_watches = kOwnWatchesPerTenantMax;
  // Who says so, for people; empty: nobody but this host.
  std::string own_watches_set_by = {};
};
// By tenant_of().
using BoundsOf = std::function<TenantBounds(const std::string& tenant)>;

}  // namespace hangar::gateway
