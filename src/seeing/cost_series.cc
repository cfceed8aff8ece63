#include "seeing/cost_series.h"

#include "base/time.h"
#include "budget/namespace_series.h"
#include "seeing/cost.h"

#include <string>
#include <utility>
#include <vector>

namespace hangar::seeing {

std::vector<CostRow> CostSeries::look(const std::vector<CostRow>& rows, Instant now) {
  budget::NamespaceSeries<Cost>::PerNamespace sums;
  Cost host;
  for (const CostRow& row : rows)
    (row.namespace_ == kHostRow ? host : sums[row.namespace_]) += row.cost;
  host_ += host.growth_since(host_);
  tenants_.look(std::move(sums), now);
  std::vector<CostRow> series = {
      {.namespace_ = std::string(kHostRow), .module = {}, .cost = host_}};
  for (auto& [name, cost] : tenants_.values())
    series.push_back({.namespace_ = name, .module = {}, .cost = cost});
  return series;
}

}  // namespace hangar::seeing
