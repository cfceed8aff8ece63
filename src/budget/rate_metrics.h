// Metrics of the processor time of namespaces.
#pragma once

#include "base/metrics.h"
#include "budget/rates.h"

#include <memory>

namespace hangar::budget {

// Namespaces have series as in namespace_series.h. `rates` outlives the result.
[[nodiscard]] std::unique_ptr<Metrics::Collection> collect_rates(Metrics& metrics,
                                                                 const Rates& rates);

}  // namespace hangar::budget
