#include "ops/metrics_text.h"

#include "base/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace hangar::ops {
namespace {

using testing::HasSubstr;

TEST(MetricsText, WritesEachTypeAsPrometheusReadsIt) {
  Metrics metrics;
  metrics.counter("c_total", "a counter", {{"verb", "GET"}}).add(2);
  metrics.gauge("g", "a gauge").set(0.5);
  Histogram& histogram = metrics.histogram("h_seconds", "a histogram", {0.1, 1});
  histogram.observe(0.05);
  histogram.observe(0.5);
  histogram.observe(5);

  const std::string text = to_prometheus_text(metrics.collect());

  EXPECT_THAT(text, HasSubstr("# HELP c_total a counter\n# TYPE c_total counter\n"
                              "c_total{verb=\"GET\"} 2"));
  EXPECT_THAT(text, HasSubstr("# TYPE g gauge\ng 0.5"));
  EXPECT_THAT(text, HasSubstr("h_seconds_count 3\nh_seconds_sum 5.55"));
  EXPECT_THAT(text, HasSubstr("h_seconds_bucket{le=\"0.1\"} 1\nh_seconds_bucket{le=\"1\"} 2\n"
                              "h_seconds_bucket{le=\"+Inf\"} 3\n"));
}

TEST(MetricsText, HostileLabelValuesStayInTheirQuotes) {
  Metrics metrics;
  metrics.counter("c_total", "", {{"x", "a\"b\nc\\"}}).add();

  EXPECT_THAT(to_prometheus_text(metrics.collect()), HasSubstr("c_total{x=\"a\\\"b\\nc\\\\\"} 1"));
}

TEST(ProcessMetrics, SayWhatTheKernelSays) {
  Metrics metrics;

  add_process_metrics(metrics);

  for (const Metrics::Family& family : metrics.collect()) {
    EXPECT_GT(family.samples.front().value, 0) << family.name;
  }
}

}  // namespace
}  // namespace hangar::ops
