#include "operators/operator_status.h"

#include "base/result.h"
#include "base/time.h"
#include "budget/accounts.h"
#include "foresight/moment.h"
#include "json/value.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::operators {
namespace {

using namespace std::chrono_literals;

constexpr foresight::Moment kNow{.at = Instant(1h), .wall = WallTime(24h)};

json::Value manifest(std::string_view spec = "{}", json::Value status = json::Object{}) {
  json::Value object =
      json::parse(R"({"metadata":{"name":"mirror","namespace":"n","generation":7}})").value();
  object.as_object()["spec"] = json::parse(spec).value();
  object.as_object()["status"] = std::move(status);
  return object;
}

OperatorState running(Phase phase) {
  return {.running = ShownOperator{.phase = phase, .sha256 = "abc", .resolved = "https://x/m.wasm"},
          .pod = "hangar/0"};
}

// "True Running" of a condition; empty if there is none.
std::string condition(const json::Value& status, std::string_view type) {
  const json::Array* const all = json::array_at(status, {"conditions"});
  if (all == nullptr) return "";
  for (const json::Value& one : *all) {
    if (json::string_at(one, {"type"}) != type) continue;
    return std::string(json::string_at(one, {"status"})) + " " +
           std::string(json::string_at(one, {"reason"}));
  }
  return "";
}

std::string message(const json::Value& status, std::string_view type) {
  const json::Array* const all = json::array_at(status, {"conditions"});
  for (const json::Value& one : *all)
    if (json::string_at(one, {"type"}) == type)
      return std::string(json::string_at(one, {"message"}));
  return "";
}

TEST(OperatorStatus, IsPendingWhileItsModuleIsFetched) {
  const json::Value status = operator_status(manifest(), {.awaited = "fetching"}, kNow);
  EXPECT_EQ(json::string_at(status, {"phase"}), "Pending");
  EXPECT_EQ(json::int_at(status, {"observedGeneration"}), 7);
  EXPECT_EQ(condition(status, "Ready"), "False Loading");
  EXPECT_EQ(message(status, "Ready"), "the module: fetching");
  EXPECT_EQ(condition(status, "Stalled"), "False Loading");
  EXPECT_EQ(condition(status, "CanSleep"), "");
}

TEST(OperatorStatus, FailsWithTheReasonOfAPolicy) {
  const Error refused = Error(ErrorKind::Denied, "too many").with_reason("RefusedByPolicy");
  const json::Value status = operator_status(manifest(), {.problem = refused}, kNow);
  EXPECT_EQ(json::string_at(status, {"phase"}), "Failed");
  EXPECT_EQ(condition(status, "Ready"), "False NotStarted");
  EXPECT_EQ(condition(status, "Stalled"), "True RefusedByPolicy");
  EXPECT_EQ(message(status, "Stalled"), "too many");
}

TEST(OperatorStatus, StaysReadyAndStallsWhenAChangeOfARunningOneIsRefused) {
  OperatorState state = running(Phase::Asleep);
  state.problem = Error(ErrorKind::InvalidInput, "spec.sleep: what");
  const json::Value status = operator_status(manifest(), state, kNow);
  EXPECT_EQ(json::string_at(status, {"phase"}), "Asleep");
  EXPECT_EQ(condition(status, "Ready"), "True Running");
  EXPECT_EQ(condition(status, "Stalled").substr(0, 5), "True ");
}

TEST(OperatorStatus, SaysWhyAGuestDoesNotSleep) {
  OperatorState state = running(Phase::Running);
  EXPECT_EQ(condition(operator_status(manifest(), state, kNow), "CanSleep"), "True SleepsWhenIdle");
  state.running->sleep_problem = "no disk";
  EXPECT_EQ(condition(operator_status(manifest(), state, kNow), "CanSleep"),
            "False SnapshotFailed");
  state.running->sleep = SleepPolicy::Kind::Never;
  EXPECT_EQ(condition(operator_status(manifest(), state, kNow), "CanSleep"), "False Policy");
  state.running->obstacle = "has threads";
  const json::Value status = operator_status(manifest(), state, kNow);
  EXPECT_EQ(condition(status, "CanSleep"), "False Module");
  EXPECT_EQ(json::string_at(status, {"module", "staysResidentBecause"}), "has threads");
}

TEST(OperatorStatus, ShowsWaitsAndEndsThem) {
  OperatorState state = running(Phase::Starting);
  const budget::Shortage shortage{.wanted_bytes = 2, .free_bytes = 1, .limit_bytes = 3};
  state.memory_wait = &shortage;
  json::Value status = operator_status(manifest(), state, kNow);
  EXPECT_EQ(condition(status, "WaitingForMemory"), "True HostMemory");
  EXPECT_EQ(condition(status, "WaitingForProcessorTime"), "");
  EXPECT_EQ(condition(status, "Ready"), "Unknown Starting");

  state.memory_wait = nullptr;
  status = operator_status(manifest("{}", status), state, kNow);
  EXPECT_EQ(condition(status, "WaitingForMemory"), "False Reserved");
}

TEST(OperatorStatus, HasConditionsOfWhatIsAskedForOnly) {
  OperatorState state = running(Phase::Running);
  json::Value status = operator_status(manifest(), state, kNow);
  EXPECT_EQ(condition(status, "WebhooksReady"), "");
  EXPECT_EQ(condition(status, "RecordsBodies"), "");
  EXPECT_EQ(condition(status, "Restless"), "");

  state.webhook_problem = Error(ErrorKind::Denied, "no rights");
  state.record_problem = Error(ErrorKind::Unavailable, "no recorder");
  state.running->restless_period = 30s;
  constexpr std::string_view kAsks = R"({"record":"Bodies","webhooks":[{"name":"w"}]})";
  status = operator_status(manifest(kAsks), state, kNow);
  EXPECT_EQ(condition(status, "WebhooksReady").substr(0, 6), "False ");
  EXPECT_EQ(condition(status, "RecordsBodies").substr(0, 6), "False ");
  EXPECT_EQ(condition(status, "Restless"), "True IdleTimer");

  status = operator_status(manifest("{}", status), running(Phase::Running), kNow);
  EXPECT_EQ(condition(status, "WebhooksReady"), "True NoneNamed");
  EXPECT_EQ(condition(status, "RecordsBodies"), "False NotAsked");
  EXPECT_EQ(condition(status, "Restless"), "False NoIdleTimer");
}

TEST(OperatorStatus, ShowsFigures) {
  OperatorState state = running(Phase::BackOff);
  state.running->resident_bytes = 1536 * 1024;
  state.running->start_count = 3;
  state.running->last_error = "trap";
  state.running->figures.wakes = 4;
  state.running->expected_wake = {.at = kNow.at + 1h, .spread = 1s, .confidence = 0.5F};
  const json::Value status = operator_status(manifest(), state, kNow);
  EXPECT_EQ(json::string_at(status, {"resident"}), "1.5Mi");
  EXPECT_EQ(json::string_at(status, {"onDisk"}), "0");
  EXPECT_EQ(json::int_at(status, {"restarts"}), 2);
  EXPECT_EQ(json::int_at(status, {"wakes"}), 4);
  EXPECT_EQ(json::string_at(status, {"lastError"}), "trap");
  EXPECT_EQ(json::string_at(status, {"nextWake", "time"}), to_rfc3339(kNow.wall + 1h));
  EXPECT_EQ(json::int_at(status, {"nextWake", "confidencePercent"}), 50);
  EXPECT_EQ(message(status, "Ready"), "trap");
}

TEST(OperatorStatus, DiffersInFiguresOnlyWhenNothingElseHasChanged) {
  OperatorState state = running(Phase::Running);
  const json::Value before = operator_status(manifest(), state, kNow);
  state.running->figures.wakes = 9;
  state.running->disk_bytes = 5;
  EXPECT_TRUE(differ_in_figures_only(operator_status(manifest(), state, kNow), before));
  state.running->last_error = "trap";
  EXPECT_FALSE(differ_in_figures_only(operator_status(manifest(), state, kNow), before));
  EXPECT_FALSE(differ_in_figures_only(json::Value(nullptr), before));
}

}  // namespace
}  // namespace hangar::operators
