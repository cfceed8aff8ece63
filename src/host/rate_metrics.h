// Metrics of the processor time of namespaces.
#pragma once

#include "base/metrics.h"
#include "budget/rates.h"

#include <memory>

namespace hangar::host {

// Series exist for the namespaces that have used the most processor time; the others share one.
// `rates` outlives the result.
[[nodiscard]] std::unique_ptr<Metrics::Collection> collect_rates(Metrics& metrics,
                                                                 const budget::Rates& rates);

}  // namespace hangar::host
