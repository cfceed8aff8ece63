#include "workflows/reading.h"

#include "base/time.h"
#include "json/yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string_view>

namespace hangar::workflows {
namespace {

using testing::AllOf;
using testing::HasSubstr;

json::Value manifest(std::string_view spec, std::string_view status = "{}") {
  json::Value value =
      json::parse_yaml("{metadata: {namespace: team, name: orders, uid: u1}}").value();
  value.as_object()["spec"] = json::parse_yaml(spec).value();
  value.as_object()["status"] = json::parse_yaml(status).value();
  return value;
}

constexpr std::string_view kSpec = "{module: {url: 'https://example.com/machine.wasm'}}";

// Of the run r1, as hangar writes it.
json::Value sound_status() {
  Ledger ledger;
  ledger.state = R"({"value":"idle"})";
  ledger.sha256 = "abc";
  ledger.run = "r1";
  ledger.started_at = WallTime(std::chrono::seconds(1'800'000'000));
  json::Value status = json::Object();
  put_ledger(status, ledger);
  return status;
}

TEST(Reading, OfASoundObjectHasBothParts) {
  json::Value object = manifest(kSpec);
  object.as_object()["status"] = sound_status();
  const Reading reading = read_workflow(object);

  ASSERT_FALSE(reading.problem.has_value()) << reading.problem->message;
  EXPECT_EQ(reading.workflow.key.name, "orders");
  EXPECT_EQ(reading.ledger.run, "r1");
}

// The status is not changed while the spec cannot be read.
TEST(Reading, OfAnInvalidSpecStillHasTheLedger) {
  json::Value object = manifest("{machine: 7}");
  object.as_object()["status"] = sound_status();
  const Reading reading = read_workflow(object);

  ASSERT_TRUE(reading.problem.has_value());
  EXPECT_EQ(reading.problem->reason, "SpecInvalid");
  EXPECT_EQ(reading.ledger.run, "r1");
}

TEST(Reading, OfAnInvalidStatusSaysHowToBeginAnew) {
  const Reading reading = read_workflow(manifest(kSpec, "{state: 7, inbox: none}"));

  ASSERT_TRUE(reading.problem.has_value());
  EXPECT_EQ(reading.problem->reason, kStatusInvalid);
  EXPECT_THAT(reading.problem->message,
              AllOf(HasSubstr("kubectl patch statefulworkflow orders -n team"),
                    HasSubstr(R"([{"op":"remove","path":"/status"}])")));
}

TEST(Reading, OfTwoInvalidPartsNamesTheSpec) {
  const Reading reading = read_workflow(manifest("{machine: 7}", "{state: 7, inbox: none}"));

  ASSERT_TRUE(reading.problem.has_value());
  EXPECT_EQ(reading.problem->reason, "SpecInvalid");
}

TEST(RulesOf, AWorkflowAreThoseOfItsSpec) {
  Workflow workflow;
  workflow.key = {.namespace_ = "team", .name = "orders"};
  workflow.uid = "u1";
  workflow.history_max = 5;
  workflow.timeout = std::chrono::hours(1);
  workflow.state_timeouts = {{"idle", std::chrono::minutes(1)}};
  const Rules rules = rules_of(workflow);

  EXPECT_EQ(rules.key, workflow.key);
  EXPECT_EQ(rules.uid, "u1");
  EXPECT_EQ(rules.history_max, 5U);
  EXPECT_EQ(rules.timeout, workflow.timeout);
  EXPECT_EQ(rules.state_timeouts, workflow.state_timeouts);
}

}  // namespace
}  // namespace hangar::workflows
