// The cost of namespaces as counters of metrics.
#pragma once

#include "base/time.h"
#include "budget/namespace_series.h"
#include "seeing/cost.h"

#include <vector>

namespace hangar::seeing {

// The host has its own series.
class CostSeries {
 public:
  // `rows`: all rows, as they are now. Returns one row for each series. Their sum is that of `rows`
  // until a series ends (budget/namespace_series.h), and at most briefly more: the remainder for
  // the host may shrink, since the kernel counts other processes in ticks, later than their guests
  // are charged.
  [[nodiscard]] std::vector<CostRow> look(const std::vector<CostRow>& rows, Instant now);

 private:
  Cost host_;
  budget::NamespaceSeries<Cost> tenants_;
};

}  // namespace hangar::seeing
