#include "operators/operator_ledger.h"

#include "io/loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace hangar::operators {
namespace {

using namespace std::chrono_literals;
using abi::kube_runtime::TurnOutcome;

class OperatorLedgerTest : public testing::Test {
 protected:
  // The value of a counter; the count of a histogram.
  [[nodiscard]] double value_of(const std::string& name) const {
    for (const Metrics::Family& family : metrics_.collect()) {
      if (family.name != name) continue;
      const Metrics::Sample& sample = family.samples.front();
      return family.type == Metrics::Type::Histogram
                 ? static_cast<double>(sample.histogram.cumulative_counts.back())
                 : sample.value;
    }
    ADD_FAILURE() << "no such family: " << name;
    return -1;
  }
  void wake(std::size_t arrivals, const TurnOutcome& outcome) {
    const Instant arrived = io::Loop::now();
    ledger_.on_wake(
        {.arrivals = arrivals, .arrived = arrived, .began = arrived + 3ms, .ended = arrived + 10ms},
        outcome);
  }

  Metrics metrics_;
  OperatorMetrics of_all_{metrics_};
  OperatorSeriesPool pool_{/*own_max=*/1};
  const OperatorLedger::Parts parts_{.metrics = of_all_, .series = pool_, .recorder = nullptr};
  const kube::ObjectKey key_{"shop", "prices"};
  Life life_{Life::Options{}};
  OperatorLedger ledger_{parts_, key_, life_};
};

TEST_F(OperatorLedgerTest, TellsOfAWakeTheSameEverywhere) {
  wake(3, {.was_asleep = true, .resume_time = 40us, .cpu_time = 5ms});
  wake(1, {.cpu_time = 2ms});

  EXPECT_EQ(ledger_.figures().wakes, 2U);
  EXPECT_EQ(ledger_.figures().last_cpu_time, 2ms);
  EXPECT_EQ(ledger_.figures().last_resume_time, 40us) << "the second one was resident";
  EXPECT_TRUE(ledger_.figures().last_wake.has_value());

  EXPECT_EQ(value_of("hangar_operator_wakes_total"), 2);
  EXPECT_EQ(value_of("hangar_operator_events_total"), 4);
  EXPECT_EQ(value_of("hangar_operator_events_coalesced_total"), 2);
  EXPECT_EQ(value_of("hangar_operator_wake_seconds"), 2);
  EXPECT_EQ(value_of("hangar_operator_resume_seconds"), 1);

  const OperatorSeries series = ledger_.series().read();
  EXPECT_EQ(series.wakes, 2U);
  EXPECT_EQ(series.events, 4U);
  EXPECT_EQ(series.events_coalesced, 2U);
  EXPECT_EQ(series.resumes, 1U);
  EXPECT_EQ(series.resume_time, 40us);
}

TEST_F(OperatorLedgerTest, HasNoTraceparentWithoutARecorder) {
  EXPECT_EQ(ledger_.traceparent(1, 1), "");
}

TEST_F(OperatorLedgerTest, NumbersTurnsThroughFailures) {
  static_cast<void>(life_.next(io::Loop::now()));
  EXPECT_EQ(ledger_.turn_number(), 1U);
  wake(1, {});
  EXPECT_EQ(ledger_.turn_number(), 2U);

  life_.on_turn_ended(Life::TurnEnd::Failed, io::Loop::now());
  ledger_.on_failure();
  static_cast<void>(life_.next(life_.retry_at()));
  EXPECT_EQ(ledger_.turn_number(), 3U);
  EXPECT_EQ(ledger_.figures().failures, 1U);
  EXPECT_EQ(ledger_.series().read().failures, 1U);
  EXPECT_EQ(value_of("hangar_operator_failures_total"), 1);
}

TEST_F(OperatorLedgerTest, CountsSleepThatFailedApart) {
  const Instant began = io::Loop::now();
  ledger_.on_sleep(began, /*is_asleep=*/true, /*disk_bytes=*/4096);
  ledger_.on_sleep(began, /*is_asleep=*/false, /*disk_bytes=*/0);

  EXPECT_EQ(value_of("hangar_operator_suspends_total"), 1);
  EXPECT_EQ(value_of("hangar_operator_suspend_failures_total"), 1);
  EXPECT_EQ(value_of("hangar_operator_suspend_seconds"), 1);
  EXPECT_EQ(ledger_.series().read().suspends, 1U);
}

// An operator at rest keeps its counts.
TEST_F(OperatorLedgerTest, RestingForgetsNothing) {
  ledger_.on_request();
  ledger_.on_answer(KnownMethod::Get, 200);
  ledger_.on_turn(2ms, 1ms);
  ledger_.on_success();
  ledger_.rest();
  ledger_.on_request();
  ledger_.on_turn(4ms, 3ms);
  ledger_.on_success();

  const OperatorSeries series = ledger_.series().read();
  EXPECT_EQ(ledger_.figures().requests, 2U);
  EXPECT_EQ(value_of("hangar_operator_requests_total"), 2);
  EXPECT_EQ(series.turns_succeeded, 2U);
  EXPECT_EQ(series.cpu_time, 4ms);
  ASSERT_EQ(series.answers.size(), 1U);
  EXPECT_EQ(series.answers.front().code, 200);
}

}  // namespace
}  // namespace hangar::operators
