#include "host/rate_metrics.h"

#include "base/metrics.h"
#include "budget/consumer.h"
#include "budget/rates.h"
#include "io/loop.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace hangar::host {
namespace {

TEST(RateMetrics, ShowWhatEachNamespaceHasUsedAndWhatBoundsIt) {
  budget::Rates rates;
  const budget::Tenant bounded = budget::Tenant::of_namespace("bounded");
  rates.limit_tenants([&](const budget::Tenant& tenant) {
    return tenant == bounded ? std::optional(budget::RateLimit{.millicores = 500}) : std::nullopt;
  });
  rates.charge(bounded, 3'000'000'000, io::Loop::now());
  rates.charge(budget::Tenant::of_namespace("free"), 1'000'000'000, io::Loop::now());
  ASSERT_GT(rates.wait_of(bounded, io::Loop::now()).count(), 0);
  Metrics metrics;
  const auto collection = collect_rates(metrics, rates);

  std::map<std::string, double> values;
  for (const Metrics::Family& family : metrics.collect()) {
    for (const auto& sample : family.samples)
      values[family.name + " " + sample.labels.at(0).second] = sample.value;
  }

  EXPECT_EQ(values["hangar_guest_cpu_seconds_total bounded"], 3);
  EXPECT_EQ(values["hangar_guest_cpu_seconds_total free"], 1);
  EXPECT_EQ(values["hangar_guest_cpu_namespace_limit_cores bounded"], 0.5);
  EXPECT_TRUE(values.contains("hangar_guest_cpu_braked_seconds_total bounded"));
  EXPECT_FALSE(values.contains("hangar_guest_cpu_namespace_limit_cores free"));
}

}  // namespace
}  // namespace hangar::host
