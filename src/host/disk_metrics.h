// Metrics of the disk that modules and compiled code of namespaces take.
#pragma once

#include "base/metrics.h"
#include "budget/cache_charges.h"

#include <memory>

namespace hangar::host {

// Series exist for the namespaces with the highest charges; the others share one. `charges`
// outlives the result.
[[nodiscard]] std::unique_ptr<Metrics::Collection> collect_disk(
    Metrics& metrics, const budget::CacheCharges& charges);

}  // namespace hangar::host
