#include "budget/rate_metrics.h"

#include "base/metrics.h"
#include "budget/consumer.h"
#include "budget/rates.h"
#include "io/loop.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace hangar::budget {
namespace {

std::map<std::string, double> values_of(const Metrics& metrics) {
  std::map<std::string, double> values;
  for (const Metrics::Family& family : metrics.collect()) {
    for (const auto& sample : family.samples)
      values[family.name + " " + sample.labels.at(0).second] = sample.value;
  }
  return values;
}

TEST(RateMetrics, ShowWhatEachNamespaceHasUsedAndWhatBoundsIt) {
  Rates rates;
  const Tenant bounded = Tenant::of_namespace("bounded");
  rates.limit_tenants([&](const Tenant& tenant) {
    return tenant == bounded ? std::optional(RateLimit{.millicores = 500}) : std::nullopt;
  });
  rates.charge(bounded, 3'000'000'000, io::Loop::now());
  rates.charge(Tenant::of_namespace("free"), 1'000'000'000, io::Loop::now());
  ASSERT_GT(rates.wait_of(bounded, io::Loop::now()).count(), 0);
  Metrics metrics;
  const auto collection = collect_rates(metrics, rates);

  std::map<std::string, double> values = values_of(metrics);
  EXPECT_EQ(values["hangar_guest_cpu_seconds_total bounded"], 3);
  EXPECT_EQ(values["hangar_guest_cpu_seconds_total free"], 1);
  EXPECT_EQ(values["hangar_guest_cpu_namespace_limit_cores bounded"], 0.5);
  EXPECT_TRUE(values.contains("hangar_guest_cpu_braked_seconds_total bounded"));
  EXPECT_FALSE(values.contains("hangar_guest_cpu_namespace_limit_cores free"));
}

TEST(RateMetrics, NeverShrinkWhenNamespacesOvertakeEachOther) {
  constexpr int kNamespaces = 150;
  constexpr int kSecond = 1'000'000'000;
  Rates rates;
  Metrics metrics;
  const auto collection = collect_rates(metrics, rates);
  std::map<std::string, double> before;
  double charged = 0;

  for (int scrape = 1; scrape <= 10; ++scrape) {
    for (int at = 0; at < kNamespaces; ++at) {
      const int seconds = 1 + (at * 37 + scrape * 61) % kNamespaces;
      rates.charge(Tenant::of_namespace("n" + std::to_string(at)),
                   static_cast<std::uint64_t>(seconds) * kSecond, io::Loop::now());
      charged += seconds;
    }
    const std::map<std::string, double> after = values_of(metrics);

    double sum = 0;
    for (const auto& [name, value] : after)
      sum += value;
    EXPECT_NEAR(sum, charged, 0.001);
    for (const auto& [name, value] : before) {
      ASSERT_TRUE(after.contains(name)) << name << " in scrape " << scrape;
      EXPECT_GE(after.at(name), value) << name << " in scrape " << scrape;
    }
    before = after;
  }
}

}  // namespace
}  // namespace hangar::budget
