#include "budget/disk_metrics.h"

#include "base/metrics.h"
#include "budget/cache_charges.h"
#include "budget/consumer.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace hangar::budget {
namespace {

TEST(DiskMetrics, ShowWhatEachNamespaceUsesAndWhatBoundsIt) {
  CacheCharges charges({.namespace_bytes_max = 1'000'000});
  charges.limit_tenants(
      {.namespaces = {{"bounded", {.bytes_max = 10'000, .set_by = "TenantPolicy a"}}}});
  const auto use = [&charges](const std::string& tenant) {
    return charges.charge(Tenant::of_namespace(tenant), {.name = "module"}, 8192).has_value();
  };
  ASSERT_TRUE(use("bounded") && use("free") && use(""));
  Metrics metrics;
  const auto collection = collect_disk(metrics, charges);

  std::map<std::string, double> values;
  for (const Metrics::Family& family : metrics.collect()) {
    for (const auto& sample : family.samples)
      values[family.name + " " + sample.labels.at(0).second] = sample.value;
  }

  EXPECT_EQ(values["hangar_module_disk_bytes bounded"], 8192);
  EXPECT_EQ(values["hangar_module_disk_bytes free"], 8192);
  EXPECT_EQ(values["hangar_module_disk_bytes (cluster)"], 8192);
  EXPECT_EQ(values["hangar_module_disk_namespace_limit_bytes bounded"], 10'000);
  EXPECT_EQ(values["hangar_module_disk_namespace_limit_bytes free"], 1'000'000);
  EXPECT_FALSE(values.contains("hangar_module_disk_namespace_limit_bytes (cluster)"));
}

}  // namespace
}  // namespace hangar::budget
