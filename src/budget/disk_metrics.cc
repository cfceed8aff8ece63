#include "budget/disk_metrics.h"

#include "base/metrics.h"
#include "budget/cache_charges.h"
#include "budget/consumer.h"
#include "budget/namespace_samples.h"

#include <memory>

namespace hangar::budget {

std::unique_ptr<Metrics::Collection> collect_disk(Metrics& metrics, const CacheCharges& charges) {
  return metrics.collect_from([&charges](Metrics::Families& families) {
    Metrics::Family& used = families.family(
        "hangar_module_disk_bytes",
        "Disk space used by modules and compiled code, by namespace; a shared file counts for each "
        "namespace that uses it.",
        Metrics::Type::Gauge);
    Metrics::Family& limits = families.family(
        "hangar_module_disk_namespace_limit_bytes",
        "Disk space that modules and compiled code of one namespace may use, by namespace.",
        Metrics::Type::Gauge);
    for (const Tenant& tenant : add_largest(used, charges.charged())) {
      // Modules of cluster-scoped objects have no separate limit.
      if (tenant.namespace_name().empty()) continue;
      add_sample(limits, tenant.label(), static_cast<double>(charges.limit_of(tenant).bytes_max));
    }
  });
}

}  // namespace hangar::budget
