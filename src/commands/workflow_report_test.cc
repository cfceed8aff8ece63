#include "commands/workflow_report.h"

#include "base/result.h"
#include "commands/test_hostile_text.h"
#include "json/value.h"
#include "workflows/ledger.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::commands {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

json::Value workflow_with(std::string_view status) {
  return *json::parse(fmt::format(
      R"({{"metadata": {{"name": "orders", "namespace": "team"}}, "status": {}}})", status));
}

WorkflowFindings findings_of(json::Value manifest) {
  Result<workflows::Ledger> ledger = workflows::parse_ledger(json::find(manifest, {"status"}));
  return {.manifest = std::move(manifest),
          .ledger = std::move(ledger),
          .drawing = "the drawing\n",
          .warnings = std::vector<json::Value>()};
}

json::Value warning(std::string_view time, std::string_view reason, int count = 1) {
  return json::Object{
      {"lastTimestamp", time}, {"reason", reason}, {"message", "it is so"}, {"count", count}};
}

// Tenants and their machines choose the texts, and administrators read them at a terminal.
TEST(WorkflowReport, LeavesATerminalAlone) {
  const std::string hostile = R"("\u001b[2J\u001b]0;t\u0007\r\u009b\n")";
  WorkflowFindings findings = findings_of(workflow_with(fmt::format(
      R"({{"state": "{{}}", "value": {0}, "run": "r", "startedAt": "2026-04-08T12:00:00Z",
          "revision": {{"sha256": "aa"}}, "nextAction": 9,
          "actors": [{{"id": {0}, "value": {0}, "status": {0},
                       "enteredAt": "2026-04-08T12:00:00Z"}}],
          "conditions": [{{"type": {0}, "status": {0}, "reason": {0}, "message": {0}}}],
          "history": [{{"sequence": 1, "time": "2026-04-08T12:00:00Z", "event": {0}, "from": {0},
                        "to": {0}, "actions": [{0}], "actors": [{0}]}}],
          "outbox": [{{"id": 7, "type": {0}, "requestedAt": "2026-04-08T12:00:00Z", "attempts": 1,
                       "lastError": {0}, "actor": {0}}}],
          "timers": [{{"id": "t", "due": "2026-04-08T12:00:00Z", "event": {{"type": {0}}}}}]}})",
      hostile)));
  ASSERT_TRUE(findings.ledger) << findings.ledger.error().message();
  json::Value event = warning("2026-04-08T12:00:00Z", "R");
  event.as_object()["reason"] = event.as_object()["message"] = json::parse(hostile).value();
  findings.warnings = std::vector<json::Value>{event};

  const std::string text = report_on(findings);

  EXPECT_TRUE(is_plain(text)) << text;
  EXPECT_THAT(text, HasSubstr(R"(\x1b[2J\x1b]0;t\x07)"));
}

TEST(WorkflowReport, HasTheConditionsOfAStatusThatCannotBeRead) {
  const WorkflowFindings findings = findings_of(workflow_with(
      R"({"state": "not JSON", "value": "dumping", "enteredAt": "2026-04-08T12:00:00.5Z",
          "conditions": [{"type": "Stalled", "status": "True", "reason": "StatusInvalid",
                          "message": "put back what was there"}]})"));
  ASSERT_FALSE(findings.ledger);

  const std::string text = report_on(findings);

  EXPECT_THAT(text, HasSubstr("team/orders: dumping since 2026-04-08T12:00:00Z\n"));
  EXPECT_THAT(text, HasSubstr("Stalled      True   StatusInvalid: put back what was there\n"));
  EXPECT_THAT(text, Not(HasSubstr("drawing")));
}

TEST(WorkflowReport, ListsWhatIsUnderWayAndWhatItFailedOf) {
  const WorkflowFindings findings = findings_of(workflow_with(
      R"({"state": "{}", "value": "dumping", "run": "r", "startedAt": "2026-04-08T12:00:00Z",
          "revision": {"sha256": "aa"}, "nextAction": 9,
          "outbox": [{"id": 7, "type": "RUN_JOB", "requestedAt": "2026-04-08T12:00:00Z",
                      "attempts": 2, "notBefore": "2026-04-08T12:00:09Z",
                      "deadline": "2026-04-08T12:30:00Z", "lastError": "jobs are forbidden"},
                     {"id": 8, "type": "WAIT_FOR", "requestedAt": "2026-04-08T12:00:01Z"}],
          "timers": [{"id": "a", "origin": "Timer", "due": "2026-04-08T13:00:00Z",
                      "event": {"type": "xstate.after.1"}}]})"));
  ASSERT_TRUE(findings.ledger) << findings.ledger.error().message();

  EXPECT_THAT(report_on(findings),
              HasSubstr("\nUnder way:\n"
                        "      RUN_JOB#7  since 2026-04-08T12:00:00Z, failed 2 times, again at "
                        "2026-04-08T12:00:09Z, until 2026-04-08T12:30:00Z: jobs are forbidden\n"
                        "      WAIT_FOR#8  since 2026-04-08T12:00:01Z\n"
                        "      at 2026-04-08T13:00:00Z  xstate.after.1\n"));
}

TEST(WorkflowReport, TellsOfTheMachinesBelow) {
  const WorkflowFindings findings = findings_of(workflow_with(
      R"({"state": "{}", "value": "making", "run": "r", "startedAt": "2026-04-08T12:00:00Z",
          "revision": {"sha256": "aa"}, "nextAction": 9, "transitions": 1,
          "actors": [{"id": "worker#1", "value": "resting", "enteredAt": "2026-04-08T12:00:02Z"},
                     {"id": "old#2", "value": "made", "status": "done", "enteredAt": "2026-04-08T12:00:03Z"}],
          "outbox": [{"id": 7, "type": "APPLY", "requestedAt": "2026-04-08T12:00:00Z", "actor": "worker#1"}],
          "timers": [{"id": "worker#1:a", "origin": "Timer", "due": "2026-04-08T13:00:00Z",
                      "event": {"type": "xstate.after.1", "hangar.actor": "worker#1"}}],
          "history": [{"sequence": 1, "time": "2026-04-08T12:00:02Z", "event": "GO", "from": "idle",
                       "to": "making", "actors": ["worker#1 began in resting"]}]})"));
  ASSERT_TRUE(findings.ledger) << findings.ledger.error().message();

  const std::string text = report_on(findings);

  EXPECT_THAT(text, HasSubstr("team/orders: making\n"
                              "  worker#1: resting since 2026-04-08T12:00:02Z\n"
                              "  old#2: made (done) since 2026-04-08T12:00:03Z\n"));
  EXPECT_THAT(text, HasSubstr("idle -> making on GO; worker#1 began in resting\n"));
  EXPECT_THAT(text, HasSubstr("APPLY#7 of worker#1  since"));
  EXPECT_THAT(text, HasSubstr("xstate.after.1 of worker#1\n"));
}

TEST(WorkflowReport, SaysNothingOfWhatIsNotThere) {
  WorkflowFindings findings = findings_of(workflow_with("{}"));
  findings.drawing = fail(ErrorKind::NotFound, "no module");

  EXPECT_EQ(report_on(findings), "team/orders: not begun\n\n(no drawing: no module)\n\n");
}

TEST(WorkflowReport, EndsWithTheLatestWarningsOldestFirst) {
  WorkflowFindings findings = findings_of(workflow_with("{}"));
  findings.warnings->push_back(warning("2026-04-08T12:00:02Z", "Last", 3));
  findings.warnings->push_back(warning("2026-04-08T12:00:00Z", "TooOld"));
  findings.warnings->push_back(warning("2026-04-08T12:00:01.5Z", "First"));
  for (int more = 0; more < 8; ++more)
    findings.warnings->push_back(warning("2026-04-08T12:00:01.7Z", "Between"));

  const std::string text = report_on(findings);

  EXPECT_THAT(text, HasSubstr("\nLatest warnings:\n"
                              "      2026-04-08T12:00:01Z  First: it is so\n"));
  EXPECT_TRUE(text.ends_with("      2026-04-08T12:00:02Z  Last (3 times): it is so\n")) << text;
  EXPECT_THAT(text, Not(HasSubstr("TooOld")));
}

TEST(WorkflowReport, SaysThatEventsMayNotBeRead) {
  WorkflowFindings findings = findings_of(workflow_with("{}"));
  findings.warnings = fail(ErrorKind::Denied, "events is forbidden");

  EXPECT_THAT(report_on(findings), HasSubstr("\n(no Events: events is forbidden)\n"));
}

}  // namespace
}  // namespace hangar::commands
