#include "workflows/migration.h"

#include "workflows/workflow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string_view>

namespace hangar::workflows {
namespace {

using abi::statemachine::Delay;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

json::Value asking_for(std::string_view request) {
  return json::Object{
      {"metadata", json::Object{{"annotations", json::Object{{kMigrateAnnotation, request}}}}}};
}

Ledger begun() {
  Ledger ledger;
  ledger.state = R"({"value":"waiting"})";
  ledger.value = "waiting";
  return ledger;
}

TEST(OpenRequest, IsTheAnnotationOfAWorkflowThatHasBegun) {
  EXPECT_EQ(open_request(asking_for("v2"), begun()), "v2");
  EXPECT_EQ(open_request(asking_for("v2"), Ledger()), "") << "it begins with the new machine";
  EXPECT_EQ(open_request(json::Object(), begun()), "");
}

TEST(OpenRequest, IsAnsweredOnceWhateverTheAnswerWas) {
  for (const bool is_done : {true, false}) {
    Ledger ledger = begun();
    ledger.migration = Migration{.request = "v2", .is_done = is_done};

    EXPECT_EQ(open_request(asking_for("v2"), ledger), "");
    EXPECT_EQ(open_request(asking_for("v3"), ledger), "v3");
    EXPECT_EQ(open_request(json::Object(), ledger), "");
  }
}

TEST(Obstacle, IsADelayThatOnlyEnteringTheStateCanStart) {
  const auto obstacle = obstacle_of(
      {{.event = "xstate.after.1000.m", .duration = seconds(1)}, {.event = "xstate.after.named.m"}},
      begun(), "abc");

  ASSERT_TRUE(obstacle.has_value());
  EXPECT_THAT(*obstacle, AllOf(StartsWith("the state waiting has the delay xstate.after.named.m"),
                               HasSubstr("sha256:abc"), HasSubstr("migrate in another state")));
}

TEST(Obstacle, NamesTheActorWhoseDelayItIs) {
  const auto obstacle =
      obstacle_of({{.event = "xstate.after.named.m", .actor = "worker#1"}}, begun(), "abc");

  ASSERT_TRUE(obstacle.has_value());
  EXPECT_THAT(*obstacle, StartsWith("worker#1 has the delay"));
}

TEST(Obstacle, IsNoneForDelaysOfKnownLength) {
  EXPECT_FALSE(obstacle_of({}, begun(), "abc").has_value());
  EXPECT_FALSE(
      obstacle_of({{.event = "xstate.after.1000.m", .duration = seconds(1)}}, begun(), "abc")
          .has_value());
}

}  // namespace
}  // namespace hangar::workflows
