#include "budget/rate_metrics.h"

#include "base/metrics.h"
#include "base/seconds.h"
#include "base/time.h"
#include "budget/namespace_samples.h"
#include "budget/namespace_series.h"
#include "budget/rates.h"
#include "io/loop.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hangar::budget {

namespace {

constexpr double kMillicoresPerCore = 1000;

struct CountedTime {
  Duration cpu{};
  Duration braked{};

  CountedTime& operator+=(const CountedTime& other) {
    cpu += other.cpu;
    braked += other.braked;
    return *this;
  }
  [[nodiscard]] CountedTime growth_since(const CountedTime& before) const {
    return {.cpu = std::max(cpu - before.cpu, Duration::zero()),
            .braked = std::max(braked - before.braked, Duration::zero())};
  }
  friend bool operator==(const CountedTime&, const CountedTime&) = default;
};
using TimeSeries = NamespaceSeries<CountedTime>;

void collect(const Rates& rates, TimeSeries& series, Metrics::Families& families) {
  const Instant now = io::Loop::now();
  const std::vector<Rates::TenantUse> uses = rates.uses(now);
  TimeSeries::PerNamespace counted;
  for (const auto& [tenant, use] : uses)
    counted[std::string(tenant.label())] += {.cpu = use.total, .braked = use.braked};
  series.look(std::move(counted), now);
  const TimeSeries::PerNamespace values = series.values();
  Metrics::Family& used = families.family(
      "hangar_guest_cpu_seconds_total",
      "Processor time of guests, of compiling modules, of answers from the cache, of reconciles "
      "and of handling messages of guest processes, by namespace.",
      Metrics::Type::Counter);
  Metrics::Family& braked = families.family(
      "hangar_guest_cpu_braked_seconds_total",
      "Time for which work of a namespace was delayed because it had used its budgets.cpu or, "
      "while processors were short, its equal part.",
      Metrics::Type::Counter);
  Metrics::Family& limits = families.family(
      "hangar_guest_cpu_namespace_limit_cores",
      "Cores that guests of one namespace may use, if a TenantPolicy limits them or "
      "they are slowed to an equal part.",
      Metrics::Type::Gauge);
  for (const auto& [name, time] : values)
    add_sample(used, name, in_seconds(time.cpu));
  for (const auto& [tenant, use] : uses) {
    const auto found = values.find(tenant.label());
    if (found == values.end()) continue;
    // The time of an earlier limit remains.
    if (use.limit_millicores || use.braked > Duration::zero()) {
      add_sample(braked, tenant.label(), in_seconds(found->second.braked));
    }
    if (!use.limit_millicores) continue;
    add_sample(limits, tenant.label(),
               static_cast<double>(*use.limit_millicores) / kMillicoresPerCore);
  }
  const auto others = values.find(TimeSeries::kOthers);
  if (others != values.end())
    add_sample(braked, TimeSeries::kOthers, in_seconds(others->second.braked));
}

}  // namespace

std::unique_ptr<Metrics::Collection> collect_rates(Metrics& metrics, const Rates& rates) {
  return metrics.collect_from([&rates, series = TimeSeries()](Metrics::Families& families) mutable {
    collect(rates, series, families);
  });
}

}  // namespace hangar::budget
