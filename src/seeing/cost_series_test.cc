#include "seeing/cost_series.h"

#include "base/time.h"
#include "budget/namespace_series.h"
#include "seeing/cost.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::seeing {
namespace {

using namespace std::chrono_literals;

// Each member has another value, so that a test notices when two are confused.
Cost cost_of(std::uint64_t size) {
  return {.cpu = std::chrono::seconds(size),
          .memory_byte_seconds = 2 * size,
          .cache_byte_seconds = 3 * size,
          .disk_byte_seconds = 4 * size,
          .turns = 5 * size,
          .requests = 6 * size,
          .read_bytes = 7 * size,
          .written_bytes = 8 * size};
}

CostRow row_of(std::string_view namespace_, std::uint64_t size) {
  return {.namespace_ = std::string(namespace_), .module = {}, .cost = cost_of(size)};
}

std::map<std::string, Cost> by_namespace(const std::vector<CostRow>& rows) {
  std::map<std::string, Cost> costs;
  for (const CostRow& row : rows)
    costs[row.namespace_] += row.cost;
  return costs;
}

TEST(CostSeries, AddModulesAndKeepTheHostApart) {
  const std::vector<CostRow> rows = {
      {.namespace_ = "red", .module = "aa", .cost = {.cpu = 1s, .requests = 2}},
      {.namespace_ = "red", .module = {}, .cost = {.cpu = 2s, .requests = 3}},
      {.namespace_ = std::string(kHostRow), .module = {}, .cost = {.cpu = 9s}}};
  CostSeries series;

  EXPECT_EQ(series.look(rows, Instant()),
            (std::vector<CostRow>{
                {.namespace_ = std::string(kHostRow), .module = {}, .cost = {.cpu = 9s}},
                {.namespace_ = "red", .module = {}, .cost = {.cpu = 3s, .requests = 5}}}));
}

TEST(CostSeries, AreBoundedAndLoseNothing) {
  std::vector<CostRow> rows = {row_of(kHostRow, 7), row_of(kOthersRow, 5)};
  for (std::uint64_t at = 1; at <= 150; ++at)
    rows.push_back(row_of("n" + std::to_string(at), at));
  CostSeries series;

  const std::vector<CostRow> shown = series.look(rows, Instant());

  EXPECT_EQ(shown.size(), budget::kNamespaceSeriesMax + 2);
  std::map<std::string, Cost> costs = by_namespace(shown);
  EXPECT_TRUE(costs.contains("n150"));
  EXPECT_TRUE(costs.contains("n51"));
  EXPECT_EQ(costs[std::string(kOthersRow)], cost_of(5 + 50 * 51 / 2));
  EXPECT_EQ(sum_of(shown), sum_of(rows));
}

// At each look other namespaces have cost the most.
TEST(CostSeries, NeverShrinkWhenNamespacesOvertakeEachOther) {
  constexpr std::uint64_t kNamespaces = 250;
  std::vector<std::uint64_t> sizes(kNamespaces);
  CostSeries series;
  std::map<std::string, Cost> before;
  Instant now;

  for (std::uint64_t look = 1; look <= 20; ++look) {
    for (std::uint64_t at = 0; at < kNamespaces; ++at)
      sizes[at] += (at * 37 + look * 101) % kNamespaces;
    std::vector<CostRow> rows = {row_of(kHostRow, look), row_of(kOthersRow, look)};
    // More of them from look to look.
    for (std::uint64_t at = 0; at < kNamespaces && at < 40 * look; ++at)
      rows.push_back(row_of("n" + std::to_string(at), sizes[at]));
    const std::vector<CostRow> shown = series.look(rows, now += 10s);

    EXPECT_LE(shown.size(), budget::kNamespaceSeriesMax + 2);
    EXPECT_EQ(sum_of(shown), sum_of(rows));
    std::map<std::string, Cost> after = by_namespace(shown);
    for (const auto& [name, cost] : before) {
      EXPECT_TRUE(after.contains(name)) << name << " in look " << look;
      // Nothing is less than it was.
      EXPECT_EQ(cost.growth_since(after[name]), Cost()) << name << " in look " << look;
    }
    before = std::move(after);
  }
}

TEST(CostSeries, OfTheHostDoesNotShrinkWithItsRemainder) {
  CostSeries series;
  (void)series.look({row_of(kHostRow, 9)}, Instant());

  EXPECT_EQ(series.look({row_of(kHostRow, 8)}, Instant()), std::vector({row_of(kHostRow, 9)}));
  EXPECT_EQ(series.look({row_of(kHostRow, 10)}, Instant()), std::vector({row_of(kHostRow, 10)}));
}

}  // namespace
}  // namespace hangar::seeing
