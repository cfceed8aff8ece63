// The memory of objects in the cache that tenants decide on: what guests watch, and the definitions
// and children that the host watches for itself.
#pragma once

#include "budget/accounts.h"
#include "kube/cache/ration.h"

#include <memory>

namespace hangar::host {

// From the host's share of memory. Blocks.
[[nodiscard]] budget::Accounts::Limits cache_memory_limits();

// Counts objects that the host watches for itself, for their namespaces.
[[nodiscard]] std::shared_ptr<const kube::Ration> make_ration(
    std::shared_ptr<budget::Accounts> cache_memory);

}  // namespace hangar::host
