#include "airways/plan.h"

#include "airways/output.h"
#include "json/yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::airways {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

json::Value yaml(std::string_view text) {
  return json::parse_yaml(text).value();
}
Stages stages_of(std::string_view text) {
  return parse_output(text).value().stages;
}

// The document of a flight.
const json::Value kDesired = yaml(R"(
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: default
  labels: {app: web}
  annotations: {note: ours}
  finalizers: [example.com/ours]
  ownerReferences: [{apiVersion: examples.com/v1, kind: App, name: web, uid: cr-1}]
spec: {replicas: 2, selector: {matchLabels: {app: web}}}
status: {}
)");

// The server's answer to its apply.
const json::Value kAnswer = yaml(R"(
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: default
  uid: u-1
  resourceVersion: '100'
  generation: 1
  creationTimestamp: '2026-04-08T12:00:00Z'
  labels: {app: web}
  annotations: {note: ours}
  finalizers: [example.com/ours]
  ownerReferences: [{apiVersion: examples.com/v1, kind: App, name: web, uid: cr-1}]
  managedFields: [{manager: yoke}]
spec: {replicas: 2, selector: {matchLabels: {app: web}}, strategy: {type: RollingUpdate}}
status: {}
)");

kube::ObjectPtr object(const json::Value& value) {
  return kube::Object::make(json::dump(value)).value();
}

json::Value changed(json::Value value, json::Path path, std::string_view text) {
  json::set_at(value, path, yaml(text));
  return value;
}

ApplyNeed need_for(const json::Value& live, const json::Value& desired = kDesired) {
  const Applied applied = applied_of(desired, kAnswer);
  return apply_need(desired, object(live).get(), &applied);
}

TEST(ApplyNeed, IsNoneWhileNothingChanged) {
  EXPECT_EQ(need_for(kAnswer), ApplyNeed::None);
}

TEST(ApplyNeed, IsThereForWhatIsMissingOrUnknownOrBeingDeleted) {
  const Applied applied = applied_of(kDesired, kAnswer);

  EXPECT_EQ(apply_need(kDesired, nullptr, &applied), ApplyNeed::Missing);
  EXPECT_EQ(apply_need(kDesired, nullptr, nullptr), ApplyNeed::Missing);
  EXPECT_EQ(apply_need(kDesired, object(kAnswer).get(), nullptr), ApplyNeed::NeverApplied);
  const json::Value terminating =
      changed(kAnswer, {"metadata", "deletionTimestamp"}, "'2026-04-08T13:00:00Z'");
  EXPECT_EQ(apply_need(kDesired, object(terminating).get(), &applied), ApplyNeed::Terminating);
}

TEST(ApplyNeed, IsThereWhenTheFlightWantsSomethingElse) {
  const Applied applied = applied_of(kDesired, kAnswer);
  for (const json::Value& desired :
       {changed(kDesired, {"spec", "replicas"}, "3"),
        changed(kDesired, {"metadata", "labels"}, "{}"), changed(kDesired, {"data"}, "{k: v}")}) {
    EXPECT_EQ(apply_need(desired, object(kAnswer).get(), &applied), ApplyNeed::DesiredChanged);
  }
  // The order of keys means nothing.
  const json::Value reordered = yaml("{b: 1, a: {d: 1.0, c: 2}}");
  const json::Value ordered = yaml("{a: {c: 2, d: 1}, b: 1}");
  EXPECT_EQ(applied_of(reordered, kAnswer).desired_digest,
            applied_of(ordered, kAnswer).desired_digest);
}

// Another writer has written `live` after our apply.
TEST(ApplyNeed, DependsOnWhatOthersChanged) {
  struct Case {
    std::string_view name;
    json::Value live;
    ApplyNeed need;
  };
  const Case cases[] = {
      {"nothing", kAnswer, ApplyNeed::None},
      {"status", changed(kAnswer, {"status"}, "{replicas: 2}"), ApplyNeed::None},
      {"managed fields", changed(kAnswer, {"metadata", "managedFields"}, "[]"), ApplyNeed::None},
      {"generation alone", changed(kAnswer, {"metadata", "generation"}, "2"), ApplyNeed::None},
      {"a label beside ours", changed(kAnswer, {"metadata", "labels", "theirs"}, "x"),
       ApplyNeed::None},
      {"the mode of an override",
       changed(kAnswer, {"metadata", "annotations", "hangar.dev/mode"}, "x"),
       ApplyNeed::LiveChanged},
      {"an annotation beside ours",
       changed(kAnswer, {"metadata", "annotations", "deployment.kubernetes.io/revision"}, "'1'"),
       ApplyNeed::None},
      {"a finalizer beside ours",
       changed(kAnswer, {"metadata", "finalizers"}, "[theirs, example.com/ours]"), ApplyNeed::None},
      {"an owner beside ours",
       changed(kAnswer, {"metadata", "ownerReferences"},
               "[{uid: x}, {apiVersion: examples.com/v1, kind: App, name: web, uid: cr-1}]"),
       ApplyNeed::None},
      {"our label", changed(kAnswer, {"metadata", "labels", "app"}, "x"), ApplyNeed::LiveChanged},
      {"our label gone", changed(kAnswer, {"metadata", "labels"}, "{}"), ApplyNeed::LiveChanged},
      {"our annotation", changed(kAnswer, {"metadata", "annotations", "note"}, "x"),
       ApplyNeed::LiveChanged},
      {"our finalizer", changed(kAnswer, {"metadata", "finalizers"}, "[]"), ApplyNeed::LiveChanged},
      {"our owner", changed(kAnswer, {"metadata", "ownerReferences"}, "[]"),
       ApplyNeed::LiveChanged},
      {"our owner's name",
       changed(kAnswer, {"metadata", "ownerReferences"},
               "[{apiVersion: examples.com/v1, kind: App, name: other, uid: cr-1}]"),
       ApplyNeed::LiveChanged},
      {"a field that we apply", changed(kAnswer, {"spec", "replicas"}, "1"),
       ApplyNeed::LiveChanged},
      {"an atomic map that we apply",
       changed(kAnswer, {"spec", "selector", "matchLabels", "more"}, "x"), ApplyNeed::LiveChanged},
      {"a field beside ours, where one apply too many is the price",
       changed(kAnswer, {"spec", "paused"}, "true"), ApplyNeed::LiveChanged},
      {"data beside the spec", changed(kAnswer, {"data"}, "{k: v}"), ApplyNeed::LiveChanged},
      {"another object of that name", changed(kAnswer, {"metadata", "uid"}, "u-2"),
       ApplyNeed::LiveChanged},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(need_for(changed(c.live, {"metadata", "resourceVersion"}, "'101'")), c.need);
  }
}

TEST(ApplyNeed, IsNoneWhileTheCacheLagsBehindOurApply) {
  json::Value older = changed(kAnswer, {"metadata", "resourceVersion"}, "'99'");
  older = changed(older, {"spec", "replicas"}, "1");

  EXPECT_EQ(need_for(older), ApplyNeed::None);
}

TEST(ApplyNeed, ComparesNoVersionsThatAreNoNumbers) {
  json::Value other = changed(kAnswer, {"metadata", "resourceVersion"}, "99x");
  other = changed(other, {"spec", "replicas"}, "1");

  EXPECT_EQ(need_for(other), ApplyNeed::LiveChanged);
}

TEST(ApplyNeed, IncludesTheStatusOnlyWhenWeApplyOne) {
  const json::Value live = changed(changed(kAnswer, {"status"}, "{replicas: 2}"),
                                   {"metadata", "resourceVersion"}, "'101'");

  for (const std::string_view blank :
       {"{loadBalancer: {}}", "{acceptedNames: {plural: '', kind: ''}, conditions: null}"}) {
    EXPECT_EQ(need_for(live, changed(kDesired, {"status"}, blank)), ApplyNeed::None) << blank;
  }
  EXPECT_EQ(need_for(live, changed(kDesired, {"status"}, "{replicas: 1}")), ApplyNeed::LiveChanged);
}

Release release() {
  return release_of(yaml(
      "{apiVersion: examples.com/v1, kind: App, metadata: {name: web, namespace: default, uid: "
      "cr-1}}"));
}

json::Value owned(std::string_view kind, std::string_view name, std::string_view more = "") {
  return yaml("{apiVersion: v1, kind: " + std::string(kind) +
              ", metadata: {name: " + std::string(name) +
              ", uid: u, resourceVersion: '1', annotations: {instance.atc.yoke.cd/release: "
              "examples.com.App.default.web, instance.atc.yoke.cd/namespace: default}" +
              std::string(more) + "}}");
}

TEST(PlanStage, AppliesWhatNeedsIt) {
  const Stage stage = stages_of(
      "[{apiVersion: v1, kind: ConfigMap, metadata: {name: same}}, {apiVersion: v1, kind: "
      "ConfigMap, "
      "metadata: {name: new}}, {apiVersion: v1, kind: ConfigMap, metadata: {name: unknown}}, "
      "{apiVersion: v1, kind: ConfigMap, metadata: {name: going}}]")[0];
  const json::Value same = owned("ConfigMap", "same");
  const Applied applied = applied_of(stage[0], same);
  const std::vector<LiveFact> facts = {
      {.live = object(same), .applied = &applied},
      {},
      {.live = object(owned("ConfigMap", "unknown"))},
      {.live = object(owned("ConfigMap", "going", ", deletionTimestamp: '2026-01-01T00:00:00Z'"))}};

  const Result<StagePlan> plan = plan_stage(stage, facts, release(), Adoption::Unowned);

  ASSERT_TRUE(plan) << plan.error().message();
  ASSERT_EQ(plan->apply.size(), 2U);
  EXPECT_EQ(plan->apply[0].index, 1U);
  EXPECT_EQ(plan->apply[0].need, ApplyNeed::Missing);
  EXPECT_EQ(plan->apply[1].index, 2U);
  EXPECT_EQ(plan->apply[1].need, ApplyNeed::NeverApplied);
  EXPECT_THAT(plan->terminating, ElementsAre(3U));
}

TEST(PlanStage, OfAnUnchangedReleaseAppliesNothing) {
  const Stage stage = {kDesired};
  const Applied applied = applied_of(kDesired, kAnswer);
  const std::vector<LiveFact> facts = {{.live = object(kAnswer), .applied = &applied}};

  const Result<StagePlan> plan = plan_stage(stage, facts, release(), Adoption::Unowned);

  ASSERT_TRUE(plan);
  EXPECT_THAT(plan->apply, IsEmpty());
  EXPECT_THAT(plan->terminating, IsEmpty());
}

TEST(PlanStage, RefusesTheWholeStageWhenOthersOwnPartOfIt) {
  const Stage stage = stages_of(
      "[{apiVersion: v1, kind: ConfigMap, metadata: {name: mine, namespace: default}}, "
      "{apiVersion: "
      "v1, kind: ConfigMap, metadata: {name: theirs, namespace: default}}]")[0];
  json::Value theirs = owned("ConfigMap", "theirs");
  json::set_at(theirs, {"metadata", "annotations", "instance.atc.yoke.cd/release"},
               json::Value("other"));
  const std::vector<LiveFact> facts = {{}, {.live = object(theirs)}};

  const Result<StagePlan> plan = plan_stage(stage, facts, release(), Adoption::Unowned);

  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().kind(), ErrorKind::InvalidInput);
  EXPECT_EQ(plan.error().message(),
            "default/core/v1/configmap/theirs: failed to validate resource release: expected "
            "release \"default/examples.com.App.default.web\" but resource is already owned by "
            "\"default/other\"");
  EXPECT_TRUE(plan_stage(stage, facts, release(), Adoption::Force));
}

std::vector<std::vector<std::string>> names(const std::vector<std::vector<PruneStep>>& plan) {
  std::vector<std::vector<std::string>> all;
  for (const std::vector<PruneStep>& stage : plan) {
    all.emplace_back();
    for (const PruneStep& step : stage) {
      all.back().push_back((step.orphan ? "orphan " : "delete ") + step.ref.to_string());
    }
  }
  return all;
}

const std::string kA = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: d}}";
const std::string kB = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: b, namespace: d}}";
const std::string kNs = "{apiVersion: v1, kind: Namespace, metadata: {name: team}}";
const std::string kCrd =
    "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: x.y}}";

TEST(IsNews, IsAnyChangeButTheEchoOfOurOwnApply) {
  const Applied applied = applied_of(kDesired, kAnswer);

  EXPECT_FALSE(is_news(object(kAnswer).get(), &applied));
  EXPECT_TRUE(
      is_news(object(changed(kAnswer, {"metadata", "resourceVersion"}, "'101'")).get(), &applied));
  EXPECT_TRUE(is_news(object(changed(kAnswer, {"metadata", "uid"}, "u-2")).get(), &applied));
  EXPECT_TRUE(is_news(nullptr, &applied));
  EXPECT_TRUE(is_news(object(kAnswer).get(), nullptr)) << "nobody knows what we left";
  // The cache lags behind.
  EXPECT_FALSE(
      is_news(object(changed(kAnswer, {"metadata", "resourceVersion"}, "'99'")).get(), &applied));
}

TEST(IsFromBefore, IsWhatTheCacheShowsUntilItHasSeenOurApply) {
  const Applied applied = applied_of(kDesired, kAnswer);
  const auto live = [](std::string_view version) {
    return object(changed(kAnswer, {"metadata", "resourceVersion"}, version));
  };

  EXPECT_TRUE(is_from_before(*live("'99'"), &applied));
  EXPECT_FALSE(is_from_before(*live("'100'"), &applied));
  EXPECT_FALSE(is_from_before(*live("'101'"), &applied));
  EXPECT_FALSE(is_from_before(*live("'99'"), nullptr));
  // An object of that name from before, which our apply has replaced.
  EXPECT_TRUE(is_from_before(*object(changed(kAnswer, {"metadata", "uid"}, "u-0")), &applied));
}

TEST(RehearsalOf, IsOfTheDocumentsThatTheServerHasNotAccepted) {
  const auto indices = [](const StagePlan& plan, Rehearse rehearse = Rehearse::News) {
    std::vector<std::size_t> found;
    for (const ApplyStep& step : rehearsal_of(plan, rehearse))
      found.push_back(step.index);
    return found;
  };
  const StagePlan mixed = {.apply = {{.index = 0, .need = ApplyNeed::Missing},
                                     {.index = 1, .need = ApplyNeed::LiveChanged},
                                     {.index = 2, .need = ApplyNeed::DesiredChanged},
                                     {.index = 3, .need = ApplyNeed::NeverApplied}}};

  EXPECT_THAT(indices(mixed), ElementsAre(0U, 2U));
  EXPECT_THAT(indices({.apply = {{.index = 0, .need = ApplyNeed::Missing}}}), IsEmpty())
      << "it would be sent twice for nothing";
  EXPECT_THAT(indices({}), IsEmpty());
  EXPECT_THAT(indices(mixed, Rehearse::Nothing), IsEmpty());
  EXPECT_THAT(indices(mixed, Rehearse::All), ElementsAre(0U, 1U, 2U, 3U));
  EXPECT_THAT(indices({.apply = {{.index = 0, .need = ApplyNeed::NeverApplied}}}, Rehearse::All),
              ElementsAre(0U));
}

TEST(PlanPrune, RemovesWhatIsNoLongerWantedLastStageFirst) {
  const Stages previous = stages_of("[[" + kA + "],[" + kB + "]]");

  EXPECT_THAT(names(plan_prune(previous, previous, {})), IsEmpty());
  EXPECT_THAT(
      names(plan_prune(previous, {}, {})),
      ElementsAre(ElementsAre("delete d/Deployment.apps:b"), ElementsAre("delete d/ConfigMap:a")));
  EXPECT_THAT(names(plan_prune(previous, stages_of("[" + kB + "]"), {})),
              ElementsAre(ElementsAre("delete d/ConfigMap:a")));
  EXPECT_THAT(names(plan_prune({}, previous, {})), IsEmpty());
}

TEST(PlanPrune, KnowsAResourceInAnotherVersionOrStage) {
  const Stages previous = stages_of("[[" + kA + "],[" + kB + "]]");
  const Stages next = stages_of(
      "[{apiVersion: apps/v1beta1, kind: Deployment, metadata: {name: b, namespace: d}}, " + kA +
      "]");

  EXPECT_THAT(names(plan_prune(previous, next, {})), IsEmpty());
}

TEST(PlanPrune, OrphansDefinitionsAndNamespacesUnlessAskedToDeleteThem) {
  const Stages previous = stages_of("[" + kNs + "," + kCrd + "," + kA + "]");

  EXPECT_THAT(
      names(plan_prune(previous, {}, {})),
      ElementsAre(ElementsAre("delete d/ConfigMap:a"),
                  ElementsAre("orphan /Namespace:team",
                              "orphan /CustomResourceDefinition.apiextensions.k8s.io:x.y")));
  EXPECT_THAT(names(plan_prune(previous, {}, {.crds = true}))[1],
              ElementsAre("orphan /Namespace:team",
                          "delete /CustomResourceDefinition.apiextensions.k8s.io:x.y"));
  EXPECT_THAT(names(plan_prune(previous, {}, {.namespaces = true}))[1],
              ElementsAre("delete /Namespace:team",
                          "orphan /CustomResourceDefinition.apiextensions.k8s.io:x.y"));
}

TEST(PlanPrune, RemovesWhatAnInventoryListsTwiceOnce) {
  Stages inventory = stages_of("[" + kA + "]");
  inventory.push_back(inventory[0]);

  EXPECT_THAT(names(plan_prune(inventory, {}, {})),
              ElementsAre(ElementsAre("delete d/ConfigMap:a")));
}

TEST(PruneAction, IsForWhatIsStillOurs) {
  const json::Value ours = owned("ConfigMap", "a");
  const json::Value going = owned("ConfigMap", "a", ", deletionTimestamp: '2026-01-01T00:00:00Z'");
  const json::Value nobodys = yaml("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}");
  const PruneStep remove = {.ref = ref_of(ours)};
  const PruneStep orphan = {.ref = ref_of(ours), .orphan = true};

  EXPECT_EQ(prune_action(remove, nullptr, release()), PruneAction::Leave);
  EXPECT_EQ(prune_action(remove, &nobodys, release()), PruneAction::Leave);
  EXPECT_EQ(prune_action(remove, &ours, release()), PruneAction::Delete);
  EXPECT_EQ(prune_action(remove, &going, release()), PruneAction::Wait);
  EXPECT_EQ(prune_action(orphan, &ours, release()), PruneAction::Orphan);
  EXPECT_EQ(prune_action(orphan, &going, release()), PruneAction::Leave);
  EXPECT_EQ(prune_action(orphan, &nobodys, release()), PruneAction::Leave);
}

}  // namespace
}  // namespace hangar::airways
