// The memory of definitions and children that the host watches for itself.
#pragma once

#include "budget/accounts.h"
#include "kube/cache/ration.h"

#include <memory>

namespace hangar::kube {

// Counts objects that the host watches for itself, for their namespaces.
[[nodiscard]] std::shared_ptr<const Ration> make_ration(
    std::shared_ptr<budget::Accounts> cache_memory);

}  // namespace hangar::kube
