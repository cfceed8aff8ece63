#include "airways/ownership.h"

#include "airways/output.h"
#include "json/yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace hangar::airways {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

json::Value yaml(std::string_view text) {
  return json::parse_yaml(text).value();
}
Stages stages_of(std::string_view text) {
  return parse_output(text).value().stages;
}

const json::Value kBackend = yaml(
    "{apiVersion: examples.com/v1, kind: Backend, metadata: {name: test, namespace: apps, uid: "
    "cr-1}}");
const json::Value kClusterBackend =
    yaml("{apiVersion: examples.com/v1, kind: Fleet, metadata: {name: test, uid: cr-2}}");

const Scopes kScopes = {{{"", "ConfigMap"}, true},
                        {{"", "Namespace"}, false},
                        {{"apps", "Deployment"}, true},
                        {{"rbac.authorization.k8s.io", "ClusterRole"}, false}};

TEST(ReleaseOf, NamesAnInstanceAsYokeDoes) {
  const Release release = release_of(kBackend);
  EXPECT_EQ(release.name, "examples.com.Backend.apps.test");
  EXPECT_EQ(release.namespace_, "apps");
  EXPECT_EQ(release.owner(), "apps/examples.com.Backend.apps.test");
  EXPECT_FALSE(release.cross_namespace);

  const Release cluster = release_of(kClusterBackend);
  EXPECT_EQ(cluster.name, "examples.com.Fleet.test");
  EXPECT_EQ(cluster.owner(), "default/examples.com.Fleet.test");
  EXPECT_TRUE(cluster.cross_namespace);
}

const json::Value kFlight = yaml(
    "{apiVersion: yoke.cd/v1alpha1, kind: Flight, metadata: {name: x, namespace: default, uid: "
    "f-1}}");
const json::Value kClusterFlight =
    yaml("{apiVersion: yoke.cd/v1alpha1, kind: ClusterFlight, metadata: {name: x, uid: f-2}}");

TEST(ReleaseOf, AFlightHasItsNameAndAHistoryOfItsOwn) {
  const Release release = release_of(kFlight);
  EXPECT_EQ(release.name, "x") << "what the flight sees";
  EXPECT_EQ(release.namespace_, "default");
  EXPECT_EQ(release.history_name, "default/Flight.yoke.cd:x");
  EXPECT_FALSE(release.cross_namespace);

  const Release cluster = release_of(kClusterFlight);
  EXPECT_EQ(cluster.name, "x");
  EXPECT_EQ(cluster.namespace_, "default");
  EXPECT_EQ(cluster.history_name, "/ClusterFlight.yoke.cd:x");
  EXPECT_TRUE(cluster.cross_namespace);
  EXPECT_EQ(release_of(kBackend).history_name, release_of(kBackend).name);
}

json::Value config_map_of(const Release& release) {
  Stages stages = stages_of("{apiVersion: v1, kind: ConfigMap, metadata: {name: m}}");
  EXPECT_TRUE(prepare_release(stages, release, kScopes));
  return stages[0][0];
}

TEST(Owns, TellsReleasesOfOneNameApart) {
  const Release flight = release_of(kFlight);
  const Release cluster = release_of(kClusterFlight);
  const Release other = release_of(yaml(
      "{apiVersion: x.dev/v1, kind: Flight, metadata: {name: x, namespace: default, uid: i}}"));
  ASSERT_EQ(flight.owner(), cluster.owner());

  EXPECT_TRUE(flight.owns(config_map_of(flight)));
  EXPECT_TRUE(cluster.owns(config_map_of(cluster)));
  EXPECT_FALSE(flight.owns(config_map_of(cluster)));
  EXPECT_FALSE(cluster.owns(config_map_of(flight)));
  EXPECT_FALSE(flight.owns(config_map_of(other)));
}

TEST(Owns, WhatYokesHostHasMadeForAFlightIsTheFlightsByItsOwnerReference) {
  const std::string_view annotations =
      "annotations: {instance.atc.yoke.cd/release: x, instance.atc.yoke.cd/namespace: default}";
  const auto made = [&](std::string_view uid) {
    return yaml("{metadata: {" + std::string(annotations) +
                ", ownerReferences: [{apiVersion: yoke.cd/v1alpha1, kind: Flight, name: x, uid: " +
                std::string(uid) + "}]}}");
  };
  const json::Value by_hand = yaml("{metadata: {" + std::string(annotations) + "}}");

  EXPECT_TRUE(release_of(kFlight).owns(made("f-1")));
  EXPECT_FALSE(release_of(kFlight).owns(made("f-2"))) << "of the ClusterFlight";
  EXPECT_FALSE(release_of(kFlight).owns(made("f-0"))) << "of an earlier Flight of that name";
  EXPECT_FALSE(release_of(kFlight).owns(by_hand)) << "what a person released";
  EXPECT_TRUE(release_of(kBackend).owns(
      yaml("{metadata: {annotations: {instance.atc.yoke.cd/release: "
           "examples.com.Backend.apps.test, instance.atc.yoke.cd/namespace: apps}}}")))
      << "an instance's name is its own";
}

TEST(RecordedRelease, IsTheOneThatHasMadeTheResources) {
  const Release backend = release_of(kBackend);
  const Release flight = release_of(kFlight);

  const Release of_backend =
      recorded_release(backend.history_name, "apps", {{config_map_of(backend)}});
  const Release of_flight =
      recorded_release(flight.history_name, "default", {{config_map_of(flight)}});

  EXPECT_EQ(of_backend.instance, backend.instance);
  EXPECT_EQ(of_backend.managed_by, "atc.yoke");
  EXPECT_TRUE(of_backend.owns(config_map_of(backend)));
  EXPECT_EQ(of_flight.name, "x");
  EXPECT_EQ(of_flight.instance_uid, "f-1");
  EXPECT_TRUE(of_flight.owns(config_map_of(flight)));
}

TEST(RecordedRelease, OwnsNothingThatItsHistoryNamesOfOthers) {
  const json::Value foreign = config_map_of(release_of(kBackend));

  const Release planted = recorded_release("mine", "apps", {{foreign}});
  const Release elsewhere =
      recorded_release(release_of(kBackend).history_name, "other", {{foreign}});

  EXPECT_EQ(planted.name, "mine");
  EXPECT_FALSE(planted.owns(foreign));
  EXPECT_FALSE(elsewhere.owns(foreign));
}

TEST(RecordedRelease, OfAPersonHasNoInstance) {
  const Release by_hand{.name = "web", .namespace_ = "apps", .managed_by = "yoke"};
  const json::Value made = config_map_of(by_hand);

  const Release release = recorded_release("web", "apps", {{made}});

  EXPECT_EQ(json::string_at(made, {"metadata", "labels", "app.kubernetes.io/managed-by"}), "yoke");
  EXPECT_FALSE(release.has_instance());
  EXPECT_TRUE(release.owns(made));
}

TEST(MayTakeOver, AFlightTakesNothingFromAReleaseOfTheSameName) {
  const Release flight = release_of(kFlight);

  const Result<> refused =
      may_take_over(config_map_of(release_of(kClusterFlight)), flight, Adoption::Unowned);

  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(),
              HasSubstr("already owned by \"/ClusterFlight.yoke.cd:x\""));
}

TEST(OwnerOf, ReadsAnnotationsAndYokesOlderLabels) {
  struct Case {
    std::string_view name;
    std::string_view metadata;
    std::string_view owner;
  };
  const Case cases[] = {
      {"annotations",
       "{annotations: {instance.atc.yoke.cd/release: r, instance.atc.yoke.cd/namespace: ns}}",
       "ns/r"},
      {"labels",
       "{labels: {app.kubernetes.io/yoke-release: r, app.kubernetes.io/yoke-release-namespace: "
       "ns}}",
       "ns/r"},
      {"annotations win",
       "{annotations: {instance.atc.yoke.cd/release: r, instance.atc.yoke.cd/namespace: ns}, "
       "labels: {app.kubernetes.io/yoke-release: x, app.kubernetes.io/yoke-release-namespace: "
       "other}}",
       "ns/r"},
      {"no namespace", "{annotations: {instance.atc.yoke.cd/release: r}}", ""},
      {"nothing", "{}", ""},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    json::Value object = json::Object();
    json::set_at(object, {"metadata"}, yaml(c.metadata));
    EXPECT_EQ(owner_of(object), c.owner);
  }
}

TEST(Release, OfANamespacedInstanceContainsNothingOfOtherNamespaces) {
  const ResourceRef namespaced{
      .kind = {.group = "example.com", .kind = "Web"}, .namespace_ = "team", .name = "one"};
  const ResourceRef cluster_scoped{
      .kind = {.group = "example.com", .kind = "Site"}, .namespace_ = {}, .name = "one"};
  const auto child_in = [](const char* namespace_) {
    return ResourceRef{.kind = {.group = {}, .kind = "X"}, .namespace_ = namespace_, .name = "x"};
  };

  EXPECT_TRUE(may_contain(namespaced, child_in("team")));
  EXPECT_TRUE(may_contain(namespaced, child_in("")));
  EXPECT_FALSE(may_contain(namespaced, child_in("another")));
  EXPECT_TRUE(may_contain(cluster_scoped, child_in("another")));
}

TEST(InstanceOf, ReadsTheAnnotationThatPreparingWrites) {
  Stages stages = stages_of("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}");
  ASSERT_TRUE(prepare_release(stages, release_of(kBackend), kScopes));

  EXPECT_EQ(instance_of(stages[0][0]), ref_of(kBackend));
  EXPECT_EQ(instance_of(yaml("{metadata: {name: a}}")), std::nullopt);
}

TEST(MayTakeOver, DependsOnTheOwnerAndTheAdoption) {
  const Release release = release_of(kBackend);
  const json::Value ours = yaml(
      "{metadata: {annotations: {instance.atc.yoke.cd/release: examples.com.Backend.apps.test, "
      "instance.atc.yoke.cd/namespace: apps}}}");
  const json::Value others = yaml(
      "{metadata: {annotations: {instance.atc.yoke.cd/release: r, "
      "instance.atc.yoke.cd/namespace: ns}}}");
  const json::Value nobodys = yaml("{metadata: {name: a}}");
  const json::Value controlled = yaml(
      "{metadata: {ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: d, "
      "controller: true}]}}");
  const json::Value controlled_by_us = yaml(
      "{metadata: {ownerReferences: [{apiVersion: examples.com/v1, kind: Backend, name: test, uid: "
      "cr-1, controller: true}]}}");
  const json::Value referred = yaml(
      "{metadata: {ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: "
      "d}]}}");
  struct Case {
    std::string_view name;
    const json::Value& live;
    bool refuse;
    bool unowned;
  };
  const Case cases[] = {
      {"ours", ours, true, true},
      {"another release's", others, false, false},
      {"nobody's", nobodys, false, true},
      {"a controller's", controlled, false, false},
      {"our own by controller reference", controlled_by_us, false, true},
      {"owned, but not controlled", referred, false, true},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(may_take_over(c.live, release, Adoption::Refuse).has_value(), c.refuse);
    EXPECT_EQ(may_take_over(c.live, release, Adoption::Unowned).has_value(), c.unowned);
    EXPECT_TRUE(may_take_over(c.live, release, Adoption::Force));
  }

  const Result<> refused = may_take_over(others, release, Adoption::Unowned);
  EXPECT_EQ(refused.error().kind(), ErrorKind::InvalidInput);
  EXPECT_EQ(refused.error().message(),
            "expected release \"apps/examples.com.Backend.apps.test\" but resource is already "
            "owned by \"ns/r\"");
  EXPECT_THAT(may_take_over(controlled, release, Adoption::Unowned).error().message(),
              HasSubstr("owned by \"Deployment web\""));
}

TEST(Scopes, ComeFromTheReleasesOwnDefinitionsFirst) {
  const Stages stages = stages_of(R"([
    {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: inners},
     spec: {group: g, names: {kind: Inner}, scope: Namespaced}},
    {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: outers},
     spec: {group: g, names: {kind: Outer}, scope: Cluster}},
    {apiVersion: g/v1, kind: Inner, metadata: {name: a}},
    {apiVersion: v1, kind: ConfigMap, metadata: {name: a}},
    {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}])");

  EXPECT_THAT(scopes_defined_in(stages), ElementsAre(Pair(kube::GroupKind{"g", "Inner"}, true),
                                                     Pair(kube::GroupKind{"g", "Outer"}, false)));
  EXPECT_THAT(kinds_to_discover(stages),
              ElementsAre(kube::GroupVersionKind{"", "v1", "ConfigMap"},
                          kube::GroupVersionKind{"apiextensions.k8s.io", "v1",
                                                 "CustomResourceDefinition"}));
}

TEST(PrepareRelease, MarksAResourceAsTheReleases) {
  Stages stages = stages_of(
      "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {x: z}, annotations: {p: q}}, "
      "data: {k: v}}");

  const Result<> prepared = prepare_release(stages, release_of(kBackend), kScopes);

  ASSERT_TRUE(prepared) << prepared.error().message();
  EXPECT_TRUE(json::equal(stages[0][0], yaml(R"(
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  namespace: apps
  labels: {x: z, app.kubernetes.io/managed-by: atc.yoke}
  annotations:
    p: q
    instance.atc.yoke.cd/release: examples.com.Backend.apps.test
    instance.atc.yoke.cd/namespace: apps
    instance.atc.yoke.cd/instanceRef: apps/Backend.examples.com:test
  ownerReferences: [{apiVersion: examples.com/v1, kind: Backend, name: test, uid: cr-1}]
data: {k: v}
)"))) << json::dump_pretty(stages[0][0]);
}

TEST(PrepareRelease, IsTheSameWhenDoneTwice) {
  Stages stages = stages_of("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}");
  ASSERT_TRUE(prepare_release(stages, release_of(kBackend), kScopes));
  const Stages once = stages;

  ASSERT_TRUE(prepare_release(stages, release_of(kBackend), kScopes));

  EXPECT_EQ(stages, once);
}

TEST(PrepareRelease, DropsWhatOnlyTheServerSets) {
  Stages stages = stages_of(
      "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, uid: u, resourceVersion: '1', "
      "generation: 2, creationTimestamp: null, deletionTimestamp: '2026-01-01T00:00:00Z', "
      "selfLink: "
      "s, managedFields: []}}");

  ASSERT_TRUE(prepare_release(stages, release_of(kBackend), kScopes));

  for (const std::string_view field : {"uid", "resourceVersion", "generation", "creationTimestamp",
                                       "deletionTimestamp", "selfLink", "managedFields"}) {
    EXPECT_EQ(json::find(stages[0][0], {"metadata", field}), nullptr) << field;
  }
}

TEST(PrepareRelease, KeepsOwnersThatTheFlightGave) {
  Stages stages = stages_of(
      "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, ownerReferences: [{apiVersion: v1, "
      "kind: Pod, name: p, uid: p-1}]}}");

  ASSERT_TRUE(prepare_release(stages, release_of(kBackend), kScopes));

  EXPECT_EQ(json::array_at(stages[0][0], {"metadata", "ownerReferences"})->size(), 2U);
}

TEST(PrepareRelease, GivesNoNamespaceAndNoNamespacedOwnerToClusterScopedKinds) {
  Stages stages = stages_of(
      "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a, "
      "namespace: elsewhere}}");

  ASSERT_TRUE(prepare_release(stages, release_of(kBackend), kScopes));

  EXPECT_EQ(json::find(stages[0][0], {"metadata", "namespace"}), nullptr);
  EXPECT_EQ(json::find(stages[0][0], {"metadata", "ownerReferences"}), nullptr);
  EXPECT_EQ(owner_of(stages[0][0]), release_of(kBackend).owner());
}

TEST(PrepareRelease, AllowsOtherNamespacesOnlyToClusterScopedInstances) {
  constexpr std::string_view kText =
      "[{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: foo}}, {apiVersion: "
      "apps/v1, kind: Deployment, metadata: {name: b, namespace: bar}}]";
  Stages stages = stages_of(kText);

  const Result<> namespaced = prepare_release(stages, release_of(kBackend), kScopes);
  ASSERT_FALSE(namespaced);
  EXPECT_EQ(namespaced.error().kind(), ErrorKind::InvalidInput);
  EXPECT_EQ(namespaced.error().message(),
            "Multiple namespaces detected (if desired enable multinamespace releases): "
            "foo/core/v1/configmap/a: namespace \"foo\" does not match target namespace \"apps\"; "
            "bar/apps/v1/deployment/b: namespace \"bar\" does not match target namespace \"apps\"");

  stages = stages_of(kText);
  const Result<> cluster = prepare_release(stages, release_of(kClusterBackend), kScopes);
  ASSERT_TRUE(cluster) << cluster.error().message();
  EXPECT_EQ(json::string_at(stages[0][0], {"metadata", "namespace"}), "foo");
}

TEST(PrepareRelease, PutsAClusterScopedInstancesResourcesIntoDefault) {
  Stages stages = stages_of("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}");

  ASSERT_TRUE(prepare_release(stages, release_of(kClusterBackend), kScopes));

  EXPECT_EQ(json::string_at(stages[0][0], {"metadata", "namespace"}), "default");
  EXPECT_EQ(json::string_at(stages[0][0],
                            {"metadata", "annotations", "instance.atc.yoke.cd/instanceRef"}),
            "/Fleet.examples.com:test");
}

TEST(PrepareRelease, RefusesKindsThatNobodyServes) {
  Stages stages = stages_of("{apiVersion: g/v1, kind: Unheard, metadata: {name: a}}");

  const Result<> prepared = prepare_release(stages, release_of(kBackend), kScopes);

  ASSERT_FALSE(prepared);
  EXPECT_THAT(prepared.error().message(),
              AllOf(HasSubstr("_/g/v1/unheard/a"),
                    HasSubstr("no matches for kind \"Unheard\" in version \"g/v1\"")));
}

TEST(WhileDiscovering, NamesTheFirstResourceOfTheKindInYokesWords) {
  const Stages stages = stages_of(
      "[{apiVersion: v1, kind: Tab, metadata: {name: a}}, {apiVersion: stable.example.com/v1, "
      "kind: Tab, metadata: {name: b}}, {apiVersion: stable.example.com/v1, kind: Tab, metadata: "
      "{name: c, namespace: foo}}]");

  EXPECT_EQ(while_discovering(kube::make_gvk("stable.example.com/v1", "Tab"), stages),
            "setting target namespace: _/stable.example.com/v1/tab/b: failed to lookup resource "
            "mapping");
}

TEST(PrepareRelease, FindsDuplicatesThatOnlyTheDefaultNamespaceMakes) {
  Stages stages = stages_of(
      "[{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}, {apiVersion: v1, kind: ConfigMap, "
      "metadata: {name: a, namespace: apps}}]");

  const Result<> prepared = prepare_release(stages, release_of(kBackend), kScopes);

  ASSERT_FALSE(prepared);
  EXPECT_EQ(prepared.error().message(), "apps/ConfigMap:a is printed twice");
}

TEST(PrepareRelease, WritesTheModeOfAnApprovedOverrideOnly) {
  constexpr std::string_view kPrinted =
      "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {hangar.dev/mode: "
      "dynamic}}}";
  Stages without = stages_of(kPrinted);
  Stages with = stages_of(kPrinted);
  Release overridden = release_of(kBackend);
  overridden.override_mode = "static";

  ASSERT_TRUE(prepare_release(without, release_of(kBackend), kScopes));
  ASSERT_TRUE(prepare_release(with, overridden, kScopes));

  EXPECT_EQ(kube::annotation_of(without[0][0], kModeAnnotation), "") << "the flight printed it";
  EXPECT_EQ(kube::annotation_of(with[0][0], kModeAnnotation), "static");
}

TEST(OrphanPatch, RemovesWhatIsOursAndNothingElse) {
  const json::Value live = yaml(R"(
metadata:
  name: team
  resourceVersion: '7'
  labels: {app.kubernetes.io/managed-by: atc.yoke, keep: me}
  annotations:
    instance.atc.yoke.cd/release: r
    instance.atc.yoke.cd/namespace: ns
    hangar.dev/mode: static
    keep: me
  ownerReferences:
  - {apiVersion: examples.com/v1, kind: Fleet, name: test, uid: cr-2}
  - {apiVersion: v1, kind: Pod, name: p, uid: p-1}
)");

  const std::optional<json::Value> patch = orphan_patch(live, release_of(kClusterBackend));

  ASSERT_TRUE(patch);
  EXPECT_TRUE(json::equal(*patch, yaml(R"(
metadata:
  resourceVersion: '7'
  labels: {app.kubernetes.io/managed-by: null}
  annotations:
    instance.atc.yoke.cd/release: null
    instance.atc.yoke.cd/namespace: null
    hangar.dev/mode: null
  ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: p-1}]
)"))) << json::dump(*patch);
}

TEST(OrphanPatch, RemovesTheListOfOwnersWithItsLast) {
  const std::optional<json::Value> patch =
      orphan_patch(yaml("{metadata: {resourceVersion: '7', ownerReferences: [{uid: cr-2}]}}"),
                   release_of(kClusterBackend));

  ASSERT_TRUE(patch);
  EXPECT_EQ(json::dump(*patch), R"({"metadata":{"ownerReferences":null,"resourceVersion":"7"}})");
}

TEST(OrphanPatch, IsNothingForWhatIsNotOurs) {
  EXPECT_EQ(orphan_patch(yaml("{metadata: {name: a, ownerReferences: [{uid: x}]}}"),
                         release_of(kClusterBackend)),
            std::nullopt);
}

}  // namespace
}  // namespace hangar::airways
