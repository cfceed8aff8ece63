#include "nodes/class_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::nodes {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const RuntimeClass kFast = {.name = "fast", .handler = "wasmtime"};
const RuntimeClass kSlow = {.name = "slow", .handler = "wamr"};

std::vector<std::string> names_of(const ClassManifests& manifests) {
  std::vector<std::string> names;
  for (const auto& [name, manifest] : manifests)
    names.push_back(name);
  return names;
}

// The manifest as the API server stores it.
json::Value present(json::Value manifest, std::string_view uid) {
  json::set_at(manifest, {"metadata", "uid"}, json::String(uid));
  json::set_at(manifest, {"metadata", "resourceVersion"}, json::String("7"));
  return manifest;
}

json::Value foreign(json::Value manifest) {
  json::erase_at(manifest, {"metadata", "labels"});
  return manifest;
}

ClassManifests wanted(std::vector<RuntimeClass> classes) {
  return wanted_classes(classes, Policy{}, "");
}

TEST(WantedClasses, AreThoseThatAreNamed) {
  const ClassManifests manifests = wanted({kFast, kSlow});

  EXPECT_THAT(names_of(manifests), ElementsAre("fast", "slow"));
  EXPECT_EQ(json::string_at(manifests.at("slow"), {"handler"}), "wamr");
  EXPECT_NE(json::find(manifests.at("slow"), {"scheduling"}), nullptr);
}

TEST(WantedClasses, OfTheProbeSchedulesAnywhere) {
  const std::array classes = {kFast, kSlow};
  const ClassManifests manifests =
      wanted_classes(classes, {.has_probe = true}, probe_class_name("slow"));

  EXPECT_THAT(names_of(manifests), ElementsAre("fast", "slow", "slow-probe"));
  EXPECT_EQ(json::string_at(manifests.at("slow-probe"), {"handler"}), "wamr");
  EXPECT_EQ(json::find(manifests.at("slow-probe"), {"scheduling"}), nullptr);
}

TEST(WantedClasses, HaveNoneForAProbeThatDoesNotRun) {
  const std::array classes = {kFast};

  EXPECT_THAT(names_of(wanted_classes(classes, {.has_probe = false}, probe_class_name("fast"))),
              ElementsAre("fast"));
  // The user's own class for probes.
  EXPECT_THAT(names_of(wanted_classes(classes, {.has_probe = true}, "mine")), ElementsAre("fast"));
}

TEST(ClassPlan, CreatesWhatIsMissing) {
  const ClassPlan plan = plan_classes(wanted({kFast, kSlow}), {});

  EXPECT_THAT(names_of(plan.create), ElementsAre("fast", "slow"));
  EXPECT_THAT(plan.remove, IsEmpty());
  EXPECT_THAT(plan.foreign, IsEmpty());
}

TEST(ClassPlan, LeavesWhatIsAsWanted) {
  json::Value as_wanted = present(wanted({kFast}).at("fast"), "u1");
  json::set_at(as_wanted, {"metadata", "labels", "team"}, json::String("a"));
  const std::array there = {as_wanted};
  const ClassPlan plan = plan_classes(wanted({kFast}), there);

  EXPECT_THAT(plan.create, IsEmpty());
  EXPECT_THAT(plan.remove, IsEmpty());
}

TEST(ClassPlan, ReplacesAClassWhoseHandlerOrSchedulingDiffers) {
  json::Value handler = present(wanted({kFast}).at("fast"), "u1");
  json::set_at(handler, {"handler"}, json::String("another"));
  json::Value scheduling = present(wanted({kFast}).at("fast"), "u1");
  json::erase_at(scheduling, {"scheduling"});

  for (const json::Value& differs : {handler, scheduling}) {
    const std::array there = {differs};
    const ClassPlan plan = plan_classes(wanted({kFast}), there);

    EXPECT_THAT(plan.remove, ElementsAre(ClassPlan::Removal{.name = "fast", .uid = "u1"}));
    EXPECT_THAT(names_of(plan.create), ElementsAre("fast"));
  }
}

TEST(ClassPlan, RemovesOurClassThatIsWantedNoMore) {
  const std::array there = {present(wanted({kFast}).at("fast"), "u1"),
                            present(wanted({kSlow}).at("slow"), "u2")};
  const ClassPlan plan = plan_classes(wanted({kFast}), there);

  EXPECT_THAT(plan.remove, ElementsAre(ClassPlan::Removal{.name = "slow", .uid = "u2"}));
  EXPECT_THAT(plan.create, IsEmpty());
}

TEST(ClassPlan, TouchesNoClassThatIsNotOurs) {
  // One has a wanted name and another handler, the other a name that is not wanted.
  json::Value same_name = foreign(present(wanted({kFast}).at("fast"), "u1"));
  json::set_at(same_name, {"handler"}, json::String("another"));
  const std::array there = {same_name, foreign(present(wanted({kSlow}).at("slow"), "u2"))};
  const ClassPlan plan = plan_classes(wanted({kFast}), there);

  EXPECT_THAT(plan.remove, IsEmpty());
  EXPECT_THAT(plan.create, IsEmpty());
  EXPECT_THAT(plan.foreign, ElementsAre("fast"));
}

}  // namespace
}  // namespace hangar::nodes
