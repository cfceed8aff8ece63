#include "budget/namespace_samples.h"

#include "base/metrics.h"
#include "budget/consumer.h"
#include "budget/namespace_series.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace hangar::budget {
namespace {

using testing::ElementsAre;
using testing::Pair;
using testing::UnorderedElementsAre;

struct Held {
  Tenant tenant;
  std::uint64_t bytes = 0;
};

Held held(const std::string& name, std::uint64_t bytes) {
  return {.tenant = Tenant::of_namespace(name), .bytes = bytes};
}

std::map<std::string, double> values_of(const Metrics::Family& family) {
  std::map<std::string, double> values;
  for (const Metrics::Sample& sample : family.samples) {
    EXPECT_EQ(sample.labels.at(0).first, "namespace");
    values[sample.labels.at(0).second] += sample.value;
  }
  return values;
}

TEST(AddLargest, ShowsEachTenantWhileThereAreFew) {
  Metrics::Family family;
  const std::vector<Tenant> shown =
      add_largest(family, std::vector{held("small", 1), held("large", 3), held("", 2)});

  EXPECT_THAT(values_of(family),
              UnorderedElementsAre(Pair("small", 1), Pair("large", 3), Pair("(cluster)", 2)));
  EXPECT_THAT(shown, ElementsAre(Tenant::of_namespace("large"), Tenant::of_namespace(""),
                                 Tenant::of_namespace("small")));
}

TEST(AddLargest, AddsUpTheSmallestBeyondTheBound) {
  std::vector<Held> all = {held("first-of-rest", 2), held("second-of-rest", 3)};
  for (std::size_t index = 0; index < kNamespaceSeriesMax; ++index)
    all.push_back(held("large-" + std::to_string(index), 100));
  Metrics::Family family;
  const std::vector<Tenant> shown = add_largest(family, all);

  const std::map<std::string, double> values = values_of(family);
  EXPECT_EQ(values.size(), kNamespaceSeriesMax + 1);
  EXPECT_EQ(values.at("(others)"), 5);
  EXPECT_EQ(values.at("large-0"), 100);
  EXPECT_EQ(shown.size(), kNamespaceSeriesMax);
}

TEST(AddLargest, LeavesOutTheRestWhenItHoldsNothing) {
  std::vector<Held> all = {held("idle", 0)};
  for (std::size_t index = 0; index < kNamespaceSeriesMax; ++index)
    all.push_back(held("large-" + std::to_string(index), 100));
  Metrics::Family family;
  add_largest(family, all);

  EXPECT_EQ(family.samples.size(), kNamespaceSeriesMax);
}

}  // namespace
}  // namespace hangar::budget
