#include "workflows/instruments.h"

#include "base/metrics.h"
#include "base/time.h"
#include "workflows/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

namespace hangar::workflows {
namespace {

using ::testing::Contains;
using ::testing::Not;
using ::testing::Pair;

// By type and outcome.
std::map<std::pair<std::string, std::string>, double> actions_in(const Metrics& metrics) {
  std::map<std::pair<std::string, std::string>, double> found;
  for (const Metrics::Family& family : metrics.collect()) {
    if (family.name != "hangar_workflow_actions_total") continue;
    for (const Metrics::Sample& sample : family.samples) {
      const std::map<std::string, std::string> labels(sample.labels.begin(), sample.labels.end());
      found.emplace(std::pair(labels.at("action"), labels.at("outcome")), sample.value);
    }
  }
  return found;
}

PendingAction of_type(std::string type) {
  PendingAction action;
  action.type = std::move(type);
  return action;
}

// A rate over a count that begins with 1 is zero, and an alert on it misses the first failure.
TEST(Instruments, CountActionsFromZero) {
  Metrics metrics;
  const Instruments instruments(metrics);

  EXPECT_THAT(actions_in(metrics), Contains(Pair(Pair("RUN_JOB", "failed"), 0)));

  instruments.action_ended(of_type("RUN_JOB"), ActionOutcome::Failed, WallTime());

  EXPECT_THAT(actions_in(metrics), Contains(Pair(Pair("RUN_JOB", "failed"), 1)));
  EXPECT_THAT(actions_in(metrics), Contains(Pair(Pair("RUN_JOB", "done"), 0)));
}

TEST(Instruments, MakeNoSeriesForTypesThatMachinesInvent) {
  Metrics metrics;
  const Instruments instruments(metrics);

  instruments.action_ended(of_type("INVENTED"), ActionOutcome::Skipped, WallTime());

  EXPECT_THAT(actions_in(metrics), Contains(Pair(Pair("other", "skipped"), 1)));
  EXPECT_THAT(actions_in(metrics), Not(Contains(Pair(Pair("INVENTED", "skipped"), 1))));
}

}  // namespace
}  // namespace hangar::workflows
