#include "base/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace hangar {
namespace {

using testing::ElementsAre;

// "name{value of the first label}=value" for every series of a scrape.
std::vector<std::string> scrape(const Metrics& metrics) {
  std::vector<std::string> out;
  for (const Metrics::Family& family : metrics.collect()) {
    for (const Metrics::Sample& sample : family.samples) {
      const std::string label = sample.labels.empty() ? "" : sample.labels.front().second;
      out.push_back(family.name + "{" + label +
                    "}=" + std::to_string(static_cast<int>(sample.value)));
    }
  }
  return out;
}

TEST(Metrics, WhatComesAndGoesIsThereAsLongAsItsCollection) {
  Metrics metrics;
  metrics.counter("b_total", "", {{"x", "kept"}}).add(2);
  std::vector<std::string> present = {"one", "two"};
  auto collection = metrics.collect_from([&present](Metrics::Families& families) {
    for (const std::string& label : present) {
      families.family("b_total", "", Metrics::Type::Counter)
          .samples.push_back({.labels = {{"x", label}}, .value = 1});
      families.family("a", "", Metrics::Type::Gauge)
          .samples.push_back({.labels = {{"x", label}}, .value = 7});
    }
  });

  EXPECT_THAT(scrape(metrics), ElementsAre("a{one}=7", "a{two}=7", "b_total{kept}=2",
                                           "b_total{one}=1", "b_total{two}=1"));
  present.pop_back();
  EXPECT_THAT(scrape(metrics), ElementsAre("a{one}=7", "b_total{kept}=2", "b_total{one}=1"));
  collection.reset();
  EXPECT_THAT(scrape(metrics), ElementsAre("b_total{kept}=2"));
}

}  // namespace
}  // namespace hangar
