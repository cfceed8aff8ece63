#include "airways/readiness.h"

#include "json/yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::airways {
namespace {

using testing::ElementsAre;
using State = Readiness::State;

json::Value yaml(std::string_view text) {
  return json::parse_yaml(text).value();
}

json::Value object(std::string_view api_version, std::string_view kind, std::string_view status,
                   std::string_view metadata = "{name: a, generation: 2}") {
  json::Value value = json::Object();
  json::set_at(value, {"apiVersion"}, json::Value(api_version));
  json::set_at(value, {"kind"}, json::Value(kind));
  json::set_at(value, {"metadata"}, yaml(metadata));
  json::set_at(value, {"status"}, yaml(status));
  return value;
}

State state_named(std::string_view name) {
  if (name == "Ready") return State::Ready;
  return name == "Failed" ? State::Failed : State::NotReady;
}

// The cases are also those of the page of `hangar console` (src/console/page/readiness_test.ts).
TEST(Readiness, FollowsTheRuleOfEachKind) {
  std::ifstream file(HANGAR_READINESS_CASES);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const json::Value cases = json::parse(text).value();
  ASSERT_TRUE(cases.is_array());
  ASSERT_FALSE(cases.get_array().empty());
  for (const json::Value& c : cases.get_array()) {
    SCOPED_TRACE(json::string_at(c, {"name"}));
    json::Value live = c;
    json::set_at(live, {"metadata", "name"}, json::Value("a"));
    json::set_at(live, {"metadata", "generation"}, json::Value(std::int64_t{2}));
    const State state = state_named(json::string_at(c, {"state"}));
    const Readiness readiness = readiness_of(live);
    EXPECT_EQ(readiness.state, state) << readiness.why;
    EXPECT_EQ(readiness.why.empty(), state == State::Ready);
  }
}

TEST(Readiness, SaysWhy) {
  EXPECT_EQ(readiness_of(object("apps/v1", "Deployment",
                                "{observedGeneration: 2, replicas: 3, availableReplicas: 1}"))
                .why,
            "replicas is 3 but availableReplicas is 1");
  EXPECT_EQ(readiness_of(object("apps/v1", "Deployment", "{observedGeneration: 1}")).why,
            "generation 2 is not observed yet");
  EXPECT_EQ(readiness_of(object("batch/v1", "Job",
                                "{conditions: [{type: Failed, status: "
                                "'True'}]}"))
                .why,
            "job has failed");
  EXPECT_EQ(readiness_of(object("batch/v1", "Job", "{}")).why, "Complete is not True");
}

TEST(Readiness, OfAServiceNeedsAnEndpointSlice) {
  const json::Value service = object("v1", "Service", "{}");

  EXPECT_TRUE(needs_endpoint_slices(service));
  EXPECT_FALSE(needs_endpoint_slices(object("serving.knative.dev/v1", "Service", "{}")));
  EXPECT_FALSE(readiness_of(service).is_ready());
  EXPECT_TRUE(readiness_of(service, {.has_endpoint_slice = true}).is_ready());
}

TEST(Readiness, OfAnInstanceOfAnAirwayIsItsReadyCondition) {
  constexpr std::string_view kOwned =
      "{name: a, generation: 2, ownerReferences: [{apiVersion: yoke.cd/v1alpha1, kind: Airway, "
      "name: b, uid: u}]}";

  EXPECT_FALSE(readiness_of(object("examples.com/v1", "Backend", "{}", kOwned)).is_ready());
  EXPECT_TRUE(readiness_of(object("examples.com/v1", "Backend",
                                  "{conditions: [{type: Ready, status: 'True'}]}", kOwned))
                  .is_ready());
}

TEST(Readiness, OfAReleaseIsItsWorst) {
  const Readiness waits = reconcile::not_ready("a");
  const Readiness failed = {.state = State::Failed, .why = "b"};

  EXPECT_TRUE(is_worse(failed, waits));
  EXPECT_TRUE(is_worse(waits, reconcile::ready()));
  EXPECT_FALSE(is_worse(waits, failed));
  EXPECT_FALSE(is_worse(waits, reconcile::not_ready("c"))) << "the first one is told";
}

TEST(Readiness, IsNeverThatOfSomethingBeingDeleted) {
  const Readiness readiness = readiness_of(
      object("v1", "ConfigMap", "{}", "{name: a, deletionTimestamp: '2026-01-01T00:00:00Z'}"));

  EXPECT_EQ(readiness.state, State::NotReady);
}

json::Value rules(std::string_view language, std::string_view data) {
  return yaml(
      "{apiVersion: v1, kind: ConfigMap, metadata: {name: r, namespace: host, labels: "
      "{resource.yoke.cd/readiness: " +
      std::string(language) + "}}, data: " + std::string(data) + "}");
}

TEST(CustomReadiness, FindsTheRuleOfAKindBeforeItsGroups) {
  const CustomReadiness custom(
      {rules("conditions", "{Cluster.db.io: Healthy Synced, _.db.io: Ready}"),
       rules("invalid", "{Other.db.io: Never}")});

  ASSERT_NE(custom.find({"db.io", "Cluster"}), nullptr);
  EXPECT_THAT(custom.find({"db.io", "Cluster"})->conditions, ElementsAre("Healthy", "Synced"));
  ASSERT_NE(custom.find({"db.io", "Other"}), nullptr);
  EXPECT_THAT(custom.find({"db.io", "Other"})->conditions, ElementsAre("Ready"));
  EXPECT_EQ(custom.find({"other.io", "Cluster"}), nullptr);
  EXPECT_FALSE(custom.has_scripts());
}

TEST(CustomReadiness, DecidesForKindsThatNobodyKnows) {
  const CustomReadiness custom(
      {rules("conditions", "{Cluster.db.io: Healthy, Deployment.apps: X}")});
  const ReadinessFacts facts = {.custom = &custom};

  EXPECT_EQ(readiness_of(object("db.io/v1", "Cluster", "{}"), facts).why, "Healthy is not True");
  EXPECT_TRUE(
      readiness_of(object("db.io/v1", "Cluster", "{conditions: [{type: Healthy, status: 'True'}]}"),
                   facts)
          .is_ready());
  EXPECT_TRUE(readiness_of(object("apps/v1", "Deployment",
                                  "{observedGeneration: 2, conditions: [{type: Available, status: "
                                  "'True'}]}"),
                           facts)
                  .is_ready());
}

TEST(CustomReadiness, InLuaIsDecidedByItsScript) {
  const CustomReadiness custom(
      {rules("lua", "{Cluster.db.io: return function() return true end, Deployment.apps: x}")});
  const json::Value cluster = object("db.io/v1", "Cluster", "{}");

  EXPECT_TRUE(custom.has_scripts());
  const auto script = deciding_script(cluster, custom);
  ASSERT_NE(script, nullptr);
  EXPECT_EQ(script->name, "Cluster.db.io");
  EXPECT_EQ(script->source, "host/r");
  EXPECT_EQ(script->text, "return function() return true end");
  EXPECT_TRUE(readiness_of(cluster, {.custom = &custom, .scripted = Readiness{}}).is_ready());
  const Readiness failed{.state = State::Failed, .why = "because"};
  EXPECT_EQ(readiness_of(cluster, {.custom = &custom, .scripted = failed}).why, "because");
  EXPECT_EQ(readiness_of(cluster, {.custom = &custom}).state, State::NotReady);
}

TEST(CustomReadiness, AsksNoScriptWhereSomethingElseDecides) {
  const CustomReadiness custom(
      {rules("lua", "{_.apps: x, _.db.io: x}"), rules("conditions", "{User.db.io: Ready}")});

  EXPECT_NE(deciding_script(object("db.io/v1", "Cluster", "{}"), custom), nullptr);
  EXPECT_EQ(deciding_script(object("db.io/v1", "User", "{}"), custom), nullptr);
  EXPECT_EQ(deciding_script(object("apps/v1", "Deployment", "{}"), custom), nullptr);
  EXPECT_EQ(deciding_script(object("v1", "ConfigMap", "{}"), custom), nullptr);
  EXPECT_EQ(deciding_script(object("db.io/v1", "Cluster", "{}",
                                   "{name: a, deletionTimestamp: '2026-01-01T00:00:00Z'}"),
                            custom),
            nullptr);
}

TEST(CustomReadiness, KnowsAScriptThatHasChanged) {
  const json::Value cluster = object("db.io/v1", "Cluster", "{}");
  const CustomReadiness one({rules("lua", "{Cluster.db.io: return 1}")});
  const CustomReadiness same({rules("lua", "{Cluster.db.io: return 1}")});
  const CustomReadiness other({rules("lua", "{Cluster.db.io: return 2}")});
  const CustomReadiness of_group({rules("lua", "{_.db.io: return 1}")});

  const std::string digest = deciding_script(cluster, one)->digest;
  EXPECT_EQ(deciding_script(cluster, same)->digest, digest);
  EXPECT_NE(deciding_script(cluster, other)->digest, digest);
  EXPECT_NE(deciding_script(cluster, of_group)->digest, digest);
}

TEST(CustomReadiness, TakesTheLaterOfTwoRules) {
  const CustomReadiness custom(
      {rules("conditions", "{A.g: One}"), rules("conditions", "{A.g: Two}")});

  EXPECT_THAT(custom.find({"g", "A"})->conditions, ElementsAre("Two"));
}

}  // namespace
}  // namespace hangar::airways
