#include "host/costs.h"

#include "seeing/cost.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace hangar::host {

using namespace std::chrono_literals;

TEST(CostsByNamespace, AddModulesAndKeepTheHostApart) {
  const std::vector<seeing::CostRow> rows = {
      {.namespace_ = "red", .module = "aa", .cost = {.cpu = 1s, .requests = 2}},
      {.namespace_ = "red", .module = {}, .cost = {.cpu = 2s, .requests = 3}},
      {.namespace_ = std::string(seeing::kHostRow), .module = {}, .cost = {.cpu = 9s}}};

  const std::vector<seeing::CostRow> sums = costs_by_namespace(rows);

  EXPECT_EQ(sums,
            (std::vector<seeing::CostRow>{
                {.namespace_ = std::string(seeing::kHostRow), .module = {}, .cost = {.cpu = 9s}},
                {.namespace_ = "red", .module = {}, .cost = {.cpu = 3s, .requests = 5}}}));
}

TEST(CostsByNamespace, AreBoundedAndLoseNothing) {
  std::vector<seeing::CostRow> rows;
  for (int at = 1; at <= 150; ++at) {
    rows.push_back({.namespace_ = "n" + std::to_string(at),
                    .module = {},
                    .cost = {.cpu = std::chrono::seconds(at)}});
  }

  const std::vector<seeing::CostRow> sums = costs_by_namespace(rows);

  EXPECT_EQ(sums.size(), 101);
  EXPECT_EQ(sums.front().namespace_, "n150");
  EXPECT_EQ(sums.back().namespace_, seeing::kOthersRow);
  EXPECT_EQ(seeing::sum_of(sums).cpu, seeing::sum_of(rows).cpu);
}

}  // namespace hangar::host
