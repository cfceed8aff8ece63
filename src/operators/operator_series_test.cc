#include "operators/operator_series.h"

#include "operators/limits.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace hangar::operators {
namespace {

using testing::Contains;
using testing::Each;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::UnorderedElementsAre;

// All series of a scrape as "family{label=value,...} value"; of a histogram, its count.
std::vector<std::string> scrape(const Metrics& metrics) {
  std::vector<std::string> lines;
  for (const Metrics::Family& family : metrics.collect()) {
    for (const Metrics::Sample& sample : family.samples) {
      std::string labels;
      for (const auto& [name, value] : sample.labels)
        labels += fmt::format("{}{}={}", labels.empty() ? "" : ",", name, value);
      const double value = family.type == Metrics::Type::Histogram
                               ? static_cast<double>(sample.histogram.cumulative_counts.back())
                               : sample.value;
      lines.push_back(fmt::format("{}{{{}}} {}", family.name, labels, value));
    }
  }
  return lines;
}

class OperatorSeriesTest : public testing::Test {
 protected:
  Metrics metrics_;
  std::vector<OperatorReading> readings_;
  std::unique_ptr<Metrics::Collection> collection_ = metrics_.collect_from(
      [this](Metrics::Families& families) { add_series(families, readings_); });
};

TEST_F(OperatorSeriesTest, AnOperatorHasWhatAControllerInAContainerWouldExpose) {
  OperatorSeries series;
  series.turns_succeeded = 5;
  series.failures = 2;
  series.traps = 1;
  series.restarts = 2;
  series.wakes = 6;
  series.events = 9;
  series.events_coalesced = 3;
  series.resumes = 4;
  series.resume_time = std::chrono::milliseconds(500);
  series.turn_seconds.observe(0.002);
  series.answered(KnownMethod::Get, 200);
  series.answered(KnownMethod::Get, 200);
  series.answered(KnownMethod::Put, 409);
  readings_ = {{.controller = controller_label({"shop", "prices"}),
                .series = series,
                .resident_bytes = 4096,
                .disk_bytes = 300,
                .events_waiting = 7,
                .turns_under_way = 1}};

  const std::vector<std::string> lines = scrape(metrics_);
  const std::string of = "controller=shop/prices";
  for (const std::string& line : {
           "controller_runtime_reconcile_total{" + of + ",result=success} 5",
           "controller_runtime_reconcile_total{" + of + ",result=error} 2",
           "controller_runtime_reconcile_errors_total{" + of + "} 2",
           "controller_runtime_reconcile_panics_total{" + of + "} 1",
           "controller_runtime_reconcile_time_seconds{" + of + "} 1",
           "controller_runtime_active_workers{" + of + "} 1",
           "controller_runtime_max_concurrent_reconciles{" + of + "} 1",
           "workqueue_depth{" + of + ",name=shop/prices} 7",
           "workqueue_adds_total{" + of + ",name=shop/prices} 9",
           "workqueue_retries_total{" + of + ",name=shop/prices} 2",
           "workqueue_queue_duration_seconds{" + of + ",name=shop/prices} 0",
           "rest_client_requests_total{code=200," + of + ",host=gateway,method=GET} 2",
           "rest_client_requests_total{code=409," + of + ",host=gateway,method=PUT} 1",
           "hangar_controller_wakes_total{" + of + "} 6",
           "hangar_controller_resumes_total{" + of + "} 4",
           "hangar_controller_resume_seconds_total{" + of + "} 0.5",
           "hangar_controller_events_coalesced_total{" + of + "} 3",
           "hangar_controller_resident_bytes{" + of + "} 4096",
           "hangar_controller_disk_bytes{" + of + "} 300",
       }) {
    EXPECT_THAT(lines, Contains(line));
  }
}

TEST_F(OperatorSeriesTest, TheFamiliesAreSharedWithThoseOfTheHostsOwnControllers) {
  metrics_.counter("controller_runtime_reconcile_errors_total", "", {{"controller", "airway"}})
      .add(3);
  OperatorSeries series;
  readings_ = {{.controller = "shop/prices", .series = series}};

  const std::vector<std::string> lines = scrape(metrics_);
  EXPECT_THAT(lines, Contains("controller_runtime_reconcile_errors_total{controller=airway} 3"));
  EXPECT_THAT(lines,
              Contains("controller_runtime_reconcile_errors_total{controller=shop/prices} 0"));
  EXPECT_THAT(std::set<std::string>(lines.begin(), lines.end()), SizeIs(lines.size()));
}

TEST_F(OperatorSeriesTest, OnlyRestlessOperatorsHaveAPeriod) {
  using testing::HasSubstr;
  readings_ = {{.controller = "shop/calm", .series = {}},
               {.controller = "shop/restless",
                .series = {},
                .restless_period = std::chrono::milliseconds(2500)}};
  const std::vector<std::string> lines = scrape(metrics_);
  EXPECT_THAT(lines,
              Contains("hangar_controller_restless_period_seconds{controller=shop/restless} 2.5"));
  EXPECT_THAT(lines, Contains(HasSubstr("restless_period")).Times(1));
}

TEST_F(OperatorSeriesTest, NothingIsLeftOfAnOperatorThatIsGone) {
  OperatorSeries series;
  series.answered(KnownMethod::Get, 200);
  readings_ = {{.controller = "shop/prices", .series = series}};
  ASSERT_THAT(scrape(metrics_), Not(IsEmpty()));

  readings_.clear();
  EXPECT_THAT(scrape(metrics_), IsEmpty());
}

TEST(OperatorSeries, AGuestCannotMakeMoreSeriesThanTheBound) {
  OperatorSeries series;
  for (int code = 100; code < 600; ++code)
    series.answered(known_method(fmt::format("METHOD{}", code)), code);

  EXPECT_THAT(series.answers, SizeIs(limits::kOperatorAnswerKindsMax));
  EXPECT_THAT(series.answers,
              Each(testing::Field(&OperatorSeries::Answers::method, KnownMethod::Other)));
  std::uint64_t sum = 0;
  for (const OperatorSeries::Answers& answers : series.answers)
    sum += answers.count;
  EXPECT_EQ(sum, 500);
}

TEST(KnownMethod, AnythingElseIsOther) {
  EXPECT_EQ(known_method("GET"), KnownMethod::Get);
  EXPECT_EQ(known_method("OPTIONS"), KnownMethod::Options);
  EXPECT_EQ(known_method("get"), KnownMethod::Other);
  EXPECT_EQ(known_method(""), KnownMethod::Other);
}

TEST(OperatorSeriesPool, TheFirstHaveTheirOwnAndTheOthersShareOne) {
  OperatorSeriesPool pool(2);
  {
    OperatorSeriesAccount first = pool.take();
    OperatorSeriesAccount second = pool.take();
    OperatorSeriesAccount third = pool.take();
    EXPECT_NE(&first.series(), &second.series());
    EXPECT_NE(&first.series(), &pool.shared());
    EXPECT_EQ(&third.series(), &pool.shared());
    EXPECT_FALSE(pool.take().is_own());
  }
  EXPECT_TRUE(pool.take().is_own()) << "what is gone makes room for another";
}

TEST_F(OperatorSeriesTest, NothingIsLostWhileAnOperatorRests) {
  OperatorSeriesPool pool(1);
  OperatorSeriesAccount account = pool.take();
  const auto count_up = [](OperatorSeries& series) {
    std::uint64_t number = 1;
    for (std::uint64_t* const each :
         {&series.turns_succeeded, &series.failures, &series.traps, &series.restarts, &series.wakes,
          &series.events, &series.events_coalesced, &series.resumes, &series.suspends}) {
      *each += number;
      number *= 100;
    }
    series.resume_time += std::chrono::milliseconds(7);
    series.suspend_time += std::chrono::hours(1000);
    series.cpu_time += std::chrono::nanoseconds(1);
    series.turn_seconds.observe(0.002);
    series.turn_seconds.observe(1000);
    series.queue_seconds.observe(0.1);
    series.answered(KnownMethod::Get, 200);
    series.answered(KnownMethod::Other, 0);
  };
  OperatorSeries expected;
  const auto readings = [](const OperatorSeries& series) {
    return std::vector<OperatorReading>{{.controller = "shop/prices", .series = series}};
  };
  for (int round = 0; round < 2; ++round) {
    count_up(account.series());
    count_up(expected);
    account.rest();
    account.rest();
    readings_ = readings(account.read());
    const std::vector<std::string> lines = scrape(metrics_);
    readings_ = readings(expected);
    EXPECT_EQ(lines, scrape(metrics_));
    EXPECT_EQ(account.read().turn_seconds.snapshot().sum, expected.turn_seconds.snapshot().sum);
  }
}

}  // namespace
}  // namespace hangar::operators
