#include "host/rate_metrics.h"

#include "base/metrics.h"
#include "base/seconds.h"
#include "base/time.h"
#include "budget/rates.h"
#include "io/loop.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::host {

namespace {

constexpr std::size_t kSeriesMax = 100;
constexpr std::string_view kOthers = "(others)";  // A namespace cannot have this name.
constexpr double kMillicores = 1000;

void add(Metrics::Family& family, std::string_view namespace_name, double value) {
  family.samples.push_back(
      {.labels = {{"namespace", std::string(namespace_name)}}, .value = value, .histogram = {}});
}

void collect(const budget::Rates& rates, Metrics::Families& families) {
  std::vector<budget::Rates::TenantUse> uses = rates.uses(io::Loop::now());
  std::ranges::sort(
      uses, [](const auto& left, const auto& right) { return left.use.total > right.use.total; });
  Metrics::Family& used = families.family(
      "hangar_guest_cpu_seconds_total",
      "Processor time of guests, of compiling modules, of answers from the cache, of reconciles "
      "and of handling messages of guest processes, by namespace.",
      Metrics::Type::Counter);
  Metrics::Family& braked = families.family(
      "hangar_guest_cpu_braked_seconds_total",
      "Time for which work of a namespace was delayed because it had used its budgets.cpu.",
      Metrics::Type::Counter);
  Metrics::Family& limits =
      families.family("hangar_guest_cpu_namespace_limit_cores",
                      "Cores that guests of one namespace may use, if a TenantPolicy limits them.",
                      Metrics::Type::Gauge);
  Duration others_used{};
  Duration others_braked{};
  for (std::size_t index = 0; index < uses.size(); ++index) {
    const auto& [tenant, use] = uses[index];
    if (index >= kSeriesMax) {
      others_used += use.total;
      others_braked += use.braked;
      continue;
    }
    add(used, tenant.label(), in_seconds(use.total));
    if (!use.limit_millicores) continue;
    add(braked, tenant.label(), in_seconds(use.braked));
    add(limits, tenant.label(), static_cast<double>(*use.limit_millicores) / kMillicores);
  }
  if (uses.size() <= kSeriesMax) return;
  add(used, kOthers, in_seconds(others_used));
  add(braked, kOthers, in_seconds(others_braked));
}

}  // namespace

std::unique_ptr<Metrics::Collection> collect_rates(Metrics& metrics, const budget::Rates& rates) {
  return metrics.collect_from([&rates](Metrics::Families& families) { collect(rates, families); });
}

}  // namespace hangar::host
