// Metrics of the disk that modules and compiled code of namespaces take.
#pragma once

#include "base/metrics.h"
#include "budget/cache_charges.h"

#include <memory>

namespace hangar::budget {

// Series exist for the namespaces with the highest charges; the others share one. `charges`
// outlives the result.
[[nodiscard]] std::unique_ptr<Metrics::Collection> collect_disk(Metrics& metrics,
                                                                const CacheCharges& charges);

}  // namespace hangar::budget
