#include "budget/disk_metrics.h"

#include "base/metrics.h"
#include "budget/cache_charges.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::budget {

namespace {

constexpr std::size_t kDiskSeriesMax = 100;

void add_bytes(Metrics::Family& family, std::string_view namespace_name, std::uint64_t bytes) {
  family.samples.push_back({.labels = {{"namespace", std::string(namespace_name)}},
                            .value = static_cast<double>(bytes),
                            .histogram = {}});
}

}  // namespace

std::unique_ptr<Metrics::Collection> collect_disk(Metrics& metrics, const CacheCharges& charges) {
  return metrics.collect_from([&charges](Metrics::Families& families) {
    using Charged = CacheCharges::Charged;
    std::vector<Charged> charged = charges.charged();
    std::ranges::sort(charged, std::greater(), &Charged::bytes);
    Metrics::Family& used = families.family(
        "hangar_module_disk_bytes",
        "Disk space used by modules and compiled code, by namespace; a shared file counts for each "
        "namespace that uses it.",
        Metrics::Type::Gauge);
    Metrics::Family& limits = families.family(
        "hangar_module_disk_namespace_limit_bytes",
        "Disk space that modules and compiled code of one namespace may use, by namespace.",
        Metrics::Type::Gauge);
    std::uint64_t others = 0;
    for (std::size_t index = 0; index < charged.size(); ++index) {
      const auto& [tenant, bytes] = charged[index];
      if (index >= kDiskSeriesMax) {
        others += bytes;
        continue;
      }
      add_bytes(used, tenant.label(), bytes);
      // Modules of cluster-scoped objects have no separate limit.
      if (tenant.namespace_name().empty()) continue;
      add_bytes(limits, tenant.label(), charges.limit_of(tenant).bytes_max);
    }
    if (others > 0) add_bytes(used, "(others)", others);
  });
}

}  // namespace hangar::budget
