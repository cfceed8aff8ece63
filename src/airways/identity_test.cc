#include "airways/identity.h"

#include "airways/output.h"
#include "json/yaml.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>

namespace hangar::airways {
namespace {

const WallTime kNow = parse_rfc3339("2026-04-08T12:00:00Z").value();
const ResourceRef kInstance = {{"examples.com", "App"}, "default", "web"};

json::Value yaml(std::string_view text) {
  return json::parse_yaml(text).value();
}
Stages stages_of(std::string_view text) {
  return parse_output(text).value().stages;
}

json::Value instance(std::string_view status, int generation = 1) {
  json::Value value =
      yaml("{apiVersion: examples.com/v1, kind: App, metadata: {name: web, namespace: default}}");
  json::set_at(value, {"metadata", "generation"}, json::Value(generation));
  if (!status.empty()) json::set_at(value, {"status"}, yaml(status));
  return value;
}

std::string ready_condition(std::string_view status, std::string_view reason,
                            std::string_view message, int generation = 1) {
  return "{type: Ready, status: '" + std::string(status) + "', reason: " + std::string(reason) +
         ", message: " + std::string(message) +
         ", observedGeneration: " + std::to_string(generation) +
         ", lastTransitionTime: '2026-01-01T00:00:00Z'}";
}

std::string_view ready_of(const json::Value& status, std::string_view field) {
  const json::Value* condition = find_condition(status, "Ready");
  return condition == nullptr ? "none" : json::string_at(*condition, {field});
}

TEST(TakeIdentity, TakesTheInstanceOutAndKeepsTheRest) {
  Stages stages = stages_of(
      "[[{apiVersion: examples.com/v1, kind: App, metadata: {name: web, namespace: default}, "
      "status: {msg: hi}}], [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}, {apiVersion: "
      "examples.com/v1, kind: App, metadata: {name: other, namespace: default}}]]");

  const std::optional<json::Value> identity = take_identity(stages, kInstance);

  ASSERT_TRUE(identity);
  EXPECT_EQ(json::string_at(*identity, {"status", "msg"}), "hi");
  ASSERT_EQ(stages.size(), 1U);
  EXPECT_EQ(stages[0].size(), 2U);
}

TEST(TakeIdentity, FindsItInAnotherVersionAndWithoutNamespace) {
  Stages stages = stages_of("{apiVersion: examples.com/v2, kind: App, metadata: {name: web}}");

  EXPECT_TRUE(take_identity(stages, kInstance));
  EXPECT_TRUE(stages.empty());
}

TEST(TakeIdentity, TakesTheLastOfSeveral) {
  Stages stages = stages_of(
      "[{apiVersion: examples.com/v1, kind: App, metadata: {name: web}, status: {msg: one}}, "
      "{apiVersion: examples.com/v1, kind: App, metadata: {name: web}, status: {msg: two}}]");

  EXPECT_EQ(json::string_at(*take_identity(stages, kInstance), {"status", "msg"}), "two");
  EXPECT_TRUE(stages.empty());
}

TEST(TakeIdentity, LeavesOthersAlone) {
  Stages stages = stages_of(
      "[{apiVersion: examples.com/v1, kind: App, metadata: {name: web, namespace: elsewhere}}, "
      "{apiVersion: other.com/v1, kind: App, metadata: {name: web, namespace: default}}]");

  EXPECT_FALSE(take_identity(stages, kInstance));
  EXPECT_EQ(resource_count(stages), 2U);
}

TEST(NextStatus, IsOurVerdictWhenTheFlightSaysNothing) {
  const json::Value live = instance("{msg: kept}");

  const StatusUpdate update =
      next_status({.live = live, .evaluated = live, .verdict = deployed()}, kNow);

  EXPECT_TRUE(update.changed);
  EXPECT_FALSE(update.flight_owns_ready);
  EXPECT_EQ(json::string_at(update.status, {"msg"}), "kept");
  EXPECT_EQ(ready_of(update.status, "status"), "True");
  EXPECT_EQ(ready_of(update.status, "reason"), "Ready");
  EXPECT_EQ(ready_of(update.status, "message"), "Successfully deployed");
}

TEST(NextStatus, IsTheFlightsAndKeepsOurConditions) {
  const json::Value live =
      instance("{old: field, conditions: [" + ready_condition("True", "Ready", "x") + "]}");
  const json::Value identity =
      instance("{msg: hi, conditions: [{type: Custom, status: 'True', reason: R, message: m}]}");

  const StatusUpdate update = next_status(
      {.live = live, .evaluated = live, .identity = &identity, .verdict = deployed()}, kNow);

  EXPECT_TRUE(update.changed);
  EXPECT_FALSE(update.flight_owns_ready);
  EXPECT_EQ(json::string_at(update.status, {"msg"}), "hi");
  EXPECT_EQ(json::find(update.status, {"old"}), nullptr);
  EXPECT_NE(find_condition(update.status, "Custom"), nullptr);
  EXPECT_EQ(ready_of(update.status, "message"), "Successfully deployed");
  EXPECT_EQ(ready_of(update.status, "lastTransitionTime"), "2026-01-01T00:00:00Z");
}

TEST(NextStatus, RespectsAReadyConditionOfTheFlightsOwn) {
  const json::Value live =
      instance("{conditions: [" + ready_condition("True", "Ready", "x") + "]}");
  const json::Value identity =
      instance("{conditions: [{type: Ready, status: 'False', reason: Waiting, message: db}]}");

  const StatusUpdate update = next_status(
      {.live = live, .evaluated = live, .identity = &identity, .verdict = deployed()}, kNow);

  EXPECT_TRUE(update.flight_owns_ready);
  EXPECT_EQ(ready_of(update.status, "reason"), "Waiting");
  EXPECT_EQ(ready_of(update.status, "lastTransitionTime"), "2026-04-08T12:00:00Z");
}

TEST(NextStatus, DoesNotTakeAnEchoOfOurReadyForTheFlightsOwn) {
  const std::string in_progress =
      "{msg: hi, conditions: [" + ready_condition("False", "InProgress", "going") + "]}";
  const json::Value live = instance(in_progress);
  const json::Value identity = instance(in_progress);

  const StatusUpdate update = next_status(
      {.live = live, .evaluated = live, .identity = &identity, .verdict = deployed()}, kNow);

  EXPECT_FALSE(update.flight_owns_ready);
  EXPECT_EQ(ready_of(update.status, "status"), "True");
}

TEST(NextStatus, KnowsTheFlightsOwnReadyAgainAlsoWhenItRepeats) {
  const std::string error = "{conditions: [" + ready_condition("False", "Error", "db") + "]}";
  const json::Value live = instance(error);
  const json::Value identity = instance(error);

  const StatusUpdate update = next_status({.live = live,
                                           .evaluated = live,
                                           .identity = &identity,
                                           .verdict = deployed(),
                                           .flight_owned_ready = true},
                                          kNow);

  EXPECT_TRUE(update.flight_owns_ready);
  EXPECT_FALSE(update.changed);
  EXPECT_EQ(ready_of(update.status, "message"), "db");
}

TEST(NextStatus, TakesReadyBackWhenTheFlightNoLongerSetsIt) {
  const json::Value live = instance("{conditions: [" + ready_condition("True", "Own", "x") + "]}");
  const json::Value identity = instance("{msg: hi}");

  const StatusUpdate update = next_status({.live = live,
                                           .evaluated = live,
                                           .identity = &identity,
                                           .verdict = waiting_for_ready(),
                                           .flight_owned_ready = true},
                                          kNow);

  EXPECT_FALSE(update.flight_owns_ready);
  EXPECT_EQ(ready_of(update.status, "message"), "waiting for flight to become ready");
}

TEST(NextStatus, LeavesReadyAsItIsWithoutVerdict) {
  const json::Value live =
      instance("{msg: a, conditions: [" + ready_condition("True", "Ready", "x") + "]}");
  const json::Value identity = instance("{msg: b}");

  const StatusUpdate update =
      next_status({.live = live, .evaluated = live, .identity = &identity}, kNow);

  EXPECT_TRUE(update.changed);
  EXPECT_EQ(ready_of(update.status, "message"), "x");
}

TEST(NextStatus, WritesNothingWhenNothingChanges) {
  const json::Value live = instance(
      "{msg: a, conditions: [" + ready_condition("True", "Ready", "Successfully deployed") + "]}");
  const json::Value identity = instance("{msg: a}");

  EXPECT_FALSE(
      next_status({.live = live, .evaluated = live, .identity = &identity, .verdict = deployed()},
                  kNow + std::chrono::hours(1))
          .changed);
  EXPECT_FALSE(next_status({.live = live, .evaluated = live, .verdict = deployed()},
                           kNow + std::chrono::hours(1))
                   .changed);
}

TEST(NextStatus, IsOutdatedWhenTheInstanceMovedOn) {
  const json::Value evaluated = instance("{}", 1);
  const json::Value live = instance("{msg: a}", 2);
  const json::Value identity = instance("{msg: b}", 1);

  const StatusUpdate update = next_status(
      {.live = live, .evaluated = evaluated, .identity = &identity, .verdict = deployed()}, kNow);

  EXPECT_TRUE(update.outdated);
  EXPECT_FALSE(update.changed);
  EXPECT_EQ(json::string_at(update.status, {"msg"}), "a");
}

TEST(NextStatus, IgnoresAStatusThatIsNoObject) {
  const json::Value live = instance("{msg: a}");
  const json::Value identity = instance("hello");

  const StatusUpdate update = next_status(
      {.live = live, .evaluated = live, .identity = &identity, .verdict = deployed()}, kNow);

  EXPECT_EQ(json::string_at(update.status, {"msg"}), "a");
  EXPECT_EQ(ready_of(update.status, "status"), "True");
}

TEST(Verdicts, AreYokesWords) {
  EXPECT_EQ(waiting_for_ready(),
            (Verdict{ConditionStatus::False, "InProgress", "waiting for flight to become ready"}));
  EXPECT_EQ(deployed(), (Verdict{ConditionStatus::True, "Ready", "Successfully deployed"}));
  EXPECT_EQ(failed("x"), (Verdict{ConditionStatus::False, "Error", "x"}));
  EXPECT_EQ(being_removed(),
            (Verdict{ConditionStatus::False, "Terminating", "Mayday: Flight is being removed"}));
}

TEST(VerdictOf, KeepsTheReasonsThatPeopleActUpon) {
  EXPECT_EQ(verdict_of(Error(ErrorKind::Denied, "x").with_reason("Forbidden")), failed("x"));
  for (const std::string_view reason :
       {"NamespaceNotAllowed", "RefusedByPolicy", "ModuleUnavailable"}) {
    const Verdict verdict =
        verdict_of(Error(ErrorKind::Denied, "x").with_reason(std::string(reason)));
    EXPECT_EQ(verdict.reason, reason);
    EXPECT_EQ(verdict.status, ConditionStatus::False);
    EXPECT_EQ(verdict.message, "x");
  }
}

}  // namespace
}  // namespace hangar::airways
