// Samples of metrics by namespace.
#pragma once

#include "base/metrics.h"
#include "budget/consumer.h"
#include "budget/namespace_series.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::budget {

// `label`: Tenant::label(), or kOtherNamespaces.
inline void add_sample(Metrics::Family& family, std::string_view label, double value) {
  family.samples.push_back(
      {.labels = {{"namespace", std::string(label)}}, .value = value, .histogram = {}});
}

// Adds the bytes of tenants to a gauge: one sample for each of the kNamespaceSeriesMax with the
// most bytes, and kOtherNamespaces for the sum of the rest, unless that is zero. Returns the
// tenants that have a sample of their own, the one with the most bytes first. `TenantBytes` has
// `tenant` and `bytes`.
template <class TenantBytes>
std::vector<Tenant> add_largest(Metrics::Family& family, std::vector<TenantBytes> all) {
  std::ranges::sort(all, std::greater(), &TenantBytes::bytes);
  std::vector<Tenant> shown;
  std::uint64_t others = 0;
  for (const auto& [tenant, bytes] : all) {
    if (shown.size() >= kNamespaceSeriesMax) {
      others += bytes;
      continue;
    }
    add_sample(family, tenant.label(), static_cast<double>(bytes));
    shown.push_back(tenant);
  }
  if (others > 0) add_sample(family, kOtherNamespaces, static_cast<double>(others));
  return shown;
}

}  // namespace hangar::budget
