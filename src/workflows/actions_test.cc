#include "workflows/actions.h"

#include "workflows/signals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace hangar::workflows {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;

const Owner kOwner{.key = {.namespace_ = "team", .name = "db"}, .uid = "0a1b", .run = "r1"};

PendingAction action(std::string type, const char* params, std::int64_t id = 3) {
  return {.id = id,
          .type = std::move(type),
          .params = *json::parse(params),
          .requested_at = *parse_rfc3339("2026-04-08T12:00:00.25Z")};
}

ActionPlan planned(const PendingAction& wanted) {
  Result<ActionPlan> plan = plan_action(kOwner, wanted);
  EXPECT_TRUE(plan) << plan.error().message();
  return plan ? *std::move(plan) : ActionPlan{};
}

TEST(Actions, MakesThePvcOfTheArticle) {
  const ActionPlan plan = planned(action("CREATE_PVC", R"({"size":"1Gi"})"));

  EXPECT_EQ(plan.gvk.kind, "PersistentVolumeClaim");
  EXPECT_EQ(json::string_at(plan.document, {"spec", "resources", "requests", "storage"}), "1Gi");
  EXPECT_THAT(plan.key.name, StartsWith("db-"));
  EXPECT_EQ(plan.key.namespace_, "team");
  EXPECT_EQ(kube::label_of(plan.document, kUidLabel), "0a1b");
  EXPECT_EQ(kube::annotation_of(plan.document, kNameAnnotation), "team/db");
}

TEST(Actions, MakesTheDeploymentOfTheArticle) {
  const ActionPlan plan = planned(
      action("CREATE_DEPLOYMENT", R"({"imageName":"postgres:13","env":{"POSTGRES_DB":"x"}})"));

  const json::Array* const containers =
      json::array_at(plan.document, {"spec", "template", "spec", "containers"});
  ASSERT_TRUE(containers != nullptr);
  EXPECT_EQ(json::string_at(containers->at(0), {"image"}), "postgres:13");
  EXPECT_EQ(json::string_at(json::array_at(containers->at(0), {"env"})->at(0), {"name"}),
            "POSTGRES_DB");
  EXPECT_EQ(*json::find(plan.document, {"spec", "selector", "matchLabels"}),
            *json::find(plan.document, {"spec", "template", "metadata", "labels"}));
}

TEST(Actions, NamesWhatItMakesByTheActionAndByNothingElse) {
  const auto name = [](std::int64_t id, const Owner& owner) {
    return plan_action(owner, action("CREATE_PVC", R"({"size":"1Gi"})", id))->key.name;
  };
  Owner again = kOwner;
  again.run = "r2";
  Owner longer = kOwner;
  longer.key.name = std::string(200, 'x') + ".y";

  EXPECT_EQ(name(1, kOwner), name(1, kOwner));
  EXPECT_NE(name(1, kOwner), name(2, kOwner));
  EXPECT_NE(name(1, kOwner), name(1, again));
  EXPECT_LE(name(1, longer).size(), 63U);
}

TEST(Actions, RecognisesWhatWasDone) {
  const ActionPlan plan = planned(action("CREATE_PVC", R"({"size":"1Gi"})", 3));
  Owner again = kOwner;
  again.run = "r2";

  EXPECT_TRUE(has_been_done(plan.document, kOwner, 3));
  EXPECT_TRUE(has_been_done(plan.document, kOwner, 2)) << "a later action has been here";
  EXPECT_FALSE(has_been_done(plan.document, kOwner, 4));
  EXPECT_FALSE(has_been_done(plan.document, again, 3));
  EXPECT_FALSE(has_been_done(json::Object(), kOwner, 1));
}

TEST(Actions, MarksWhatItPatches) {
  const ActionPlan plan = planned(action(
      "PATCH",
      R"({"apiVersion":"apps/v1","kind":"Deployment","name":"web","patch":{"spec":{"replicas":3}}})"));

  EXPECT_TRUE(has_been_done(plan.document, kOwner, 3));
  EXPECT_EQ(json::int_at(plan.document, {"spec", "replicas"}), 3);
}

TEST(Actions, ReadsTheRetryPolicy) {
  const ActionPlan plan = planned(action("DELETE_RESOURCES", R"({"retry":{"attempts":7,
      "initialInterval":"2s","maxInterval":"1m","factor":1.5,"jitter":0,"nonRetryable":["Denied"]}})"));

  EXPECT_EQ(plan.retry.attempts_max, 7U);
  EXPECT_EQ(plan.retry.initial_interval, seconds(2));
  EXPECT_EQ(plan.retry.interval_max, minutes(1));
  EXPECT_EQ(plan.retry.factor, 1.5);
  EXPECT_EQ(plan.retry.jitter, 0);
  EXPECT_THAT(plan.retry.non_retryable, testing::ElementsAre("Denied"));
}

TEST(Actions, SaysWhatIsWrongWithParams) {
  struct Case {
    const char* type;
    const char* params;
    const char* message;
  };
  for (const Case& one : {
           Case{"CREATE_PVC", "{}", "params.size"},
           Case{"CREATE_PVC", R"({"size":1})", "params.size"},
           Case{"CREATE_DEPLOYMENT", R"({"imageName":"x","pvcName":"y"})", "params.mountPath"},
           Case{"RUN_HEALTH_CHECK", "{}", "params.deploymentName"},
           Case{"APPLY", "{}", "params.manifest"},
           Case{"APPLY", R"({"manifest":{"kind":"X"}})", "params.manifest"},
           Case{"PATCH", R"({"apiVersion":"v1","kind":"X","name":"y"})", "params.patch"},
           Case{"PATCH", R"({"apiVersion":"v1","kind":"X","name":"y","patchType":"z"})",
                "params.patchType"},
           Case{"DELETE", R"({"kind":"X","name":"y"})", "params.apiVersion"},
           Case{"WAIT_FOR", R"({"apiVersion":"v1","kind":"X","name":"y","jsonPath":"status"})",
                "params.jsonPath"},
           Case{"RUN_JOB", R"({"manifest":{"apiVersion":"v1","kind":"Pod"}})", "params.manifest"},
           Case{"RUN_JOB", "{}", "params.image"},
           Case{"SEND", R"({"workflow":"x"})", "params.event"},
           Case{"SEND", R"({"event":"x"})", "params.workflow"},
           Case{"EMIT", "{}", "params.reason"},
           Case{"EMIT", R"({"reason":"x","type":"Loud"})", "params.type"},
           Case{"EMIT", R"({"reason":"x","timeout":"soon"})", "params.timeout"},
           Case{"EMIT", R"({"reason":"x","retry":{"attempts":0}})", "params.retry.attempts"},
           Case{"EMIT", R"({"reason":"x","retry":{"factor":0.5}})", "params.retry.factor"},
           Case{"EMIT", R"({"reason":"x","retry":7})", "params.retry"},
           Case{"EMIT", R"({"reason":"x","retry":{"attempt":3}})",
                "params.retry.attempt: is not known; known are attempts, initialInterval"},
       }) {
    SCOPED_TRACE(std::string(one.type) + one.params);

    const Result<ActionPlan> plan = plan_action(kOwner, action(one.type, one.params));

    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().kind(), ErrorKind::InvalidInput);
    EXPECT_THAT(plan.error().message(), HasSubstr(one.message));
  }
}

TEST(Actions, EndInTheEventsThatTheMachineNames) {
  EXPECT_EQ(type_of(done_event(action("CREATE_PVC", "{}"))), "K8S_RESOURCE_CREATED");
  EXPECT_EQ(type_of(done_event(action("RUN_HEALTH_CHECK", "{}"))), "HEALTH_CHECK_PASSED");
  EXPECT_EQ(type_of(done_event(action("APPLY", R"({"onDone":"MADE"})"))), "MADE");
  EXPECT_EQ(type_of(failure_event(action("APPLY", "{}"), "x", "y")), "FAILURE");
  EXPECT_EQ(type_of(failure_event(action("APPLY", R"({"onError":"OOPS"})"), "x", "y")), "OOPS");
}

TEST(JsonPath, FindsWhatKubectlFinds) {
  const json::Value document = *json::parse(
      R"({"status":{"phase":"Bound","conditions":[{"type":"A","status":"x"},{"type":"B","status":"y"}],
          "a.b":[1,2]}})");
  struct Case {
    const char* path;
    std::vector<std::string> found;
  };
  for (const Case& one : {Case{"{.status.phase}", {"Bound"}}, Case{".status.phase", {"Bound"}},
                          Case{"$.status.conditions[1].status", {"y"}},
                          Case{R"(.status.conditions[?(@.type=="A")].status)", {"x"}},
                          Case{".status.conditions[?(@.type=='C')].status", {}},
                          Case{".status.conditions[*].type", {"A", "B"}},
                          Case{R"(.status.a\.b[0])", {"1"}}, Case{".status['a.b'][1]", {"2"}},
                          Case{".status.conditions[7]", {}}, Case{".nothing.here", {}}}) {
    SCOPED_TRACE(one.path);
    const Result<JsonPath> path = JsonPath::parse(one.path);
    ASSERT_TRUE(path) << path.error().message();
    std::vector<std::string> found;
    for (const json::Value* const value : path->find(document))
      found.push_back(text_of(*value));
    EXPECT_EQ(found, one.found);
  }
}

TEST(JsonPath, RefusesWhatItDoesNotUnderstand) {
  for (const char* const text : {"", "{}", "status", ".a[", ".a[x]", ".a[?(@.b)]", ".a[?(@.b==1)]",
                                 ".a..b", ".a[-1]", ".a[99999999999999999999]"}) {
    EXPECT_FALSE(JsonPath::parse(text)) << text;
  }
}

TEST(Signals, AreReadInTheOrderOfTheirIds) {
  const json::Value manifest = *json::parse(R"({"metadata":{"annotations":{
      "signal.workflows.example.com/2":"{\"type\":\"TWO\",\"x\":1}",
      "signal.workflows.example.com/1":"ONE",
      "signal.workflows.example.com/3":"{\"no\":\"type\"}",
      "other":"THREE"}}})");

  const std::vector<Signal> signals = signals_of(manifest);

  ASSERT_THAT(signals, SizeIs(3));
  EXPECT_EQ(type_of(*signals[0].event), "ONE");
  EXPECT_EQ(json::int_at(*signals[1].event, {"x"}), 1);
  EXPECT_FALSE(signals[2].event);
}

TEST(Signals, OfOtherWorkflowsSortByTheTimeOfAsking) {
  PendingAction earlier = action("SEND", "{}", 9);
  PendingAction later = action("SEND", "{}", 10);
  later.requested_at += std::chrono::microseconds(1);
  Owner other = kOwner;
  other.uid = "ffffffff-ffff-ffff-ffff-ffffffffffff";

  EXPECT_LT(signal_id(other, earlier), signal_id(kOwner, later));
  EXPECT_LE(signal_id(other, later).size(), 63U);
}

TEST(Signals, OfOneStepSortByTheOrderOfAsking) {
  EXPECT_LT(signal_id(kOwner, action("SEND", "{}", 9)),
            signal_id(kOwner, action("SEND", "{}", 10)));
}

TEST(Signals, AreObjectsWithATypeOrWords) {
  EXPECT_TRUE(parse_event("APPROVE"));
  EXPECT_TRUE(parse_event(R"( {"type":"APPROVE"} )"));
  for (const char* const text : {"", "two words", "[]", "{", R"({"type":7})", R"("APPROVE")"}) {
    EXPECT_FALSE(parse_event(text)) << text;
  }
}

}  // namespace
}  // namespace hangar::workflows
