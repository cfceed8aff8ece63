#include "commands/release_drift.h"

#include "json/yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace hangar::commands {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::size_t kMany = 1'000'000;

json::Value yaml(std::string_view text) {
  return json::parse_yaml(text).value();
}

json::Value deployment(int replicas) {
  json::Value object = yaml(
      "{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: web}, spec: {}}");
  json::set_at(object, {"spec", "replicas"}, replicas);
  return object;
}

TEST(DriftOf, ShowsTheFlightsLinesAsRemovedAndTheClustersAsAdded) {
  json::Value live = deployment(5);
  json::set_at(live, {"spec", "paused"}, true);

  const ResourceDrift one = drift_of(deployment(2), live, kMany);

  EXPECT_EQ(one.drift, Drift::Differs);
  EXPECT_EQ(one.ref.to_string(), "shop/Deployment.apps:web");
  EXPECT_THAT(one.difference, HasSubstr("--- the flight's output\n+++ the cluster\n"));
  EXPECT_THAT(one.difference, HasSubstr("\n-  replicas: 2\n+  replicas: 5\n"));
  EXPECT_THAT(one.difference, Not(HasSubstr("paused")));
  EXPECT_FALSE(one.is_cut);
}

TEST(DriftOf, TellsEqualFromMissing) {
  EXPECT_EQ(drift_of(deployment(2), deployment(2), kMany).drift, Drift::None);
  EXPECT_EQ(drift_of(deployment(2), std::nullopt, kMany).drift, Drift::Missing);
}

TEST(DriftOf, ShowsNoValueOfASecret) {
  const json::Value printed = yaml(
      "{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {key: b25l, kept: c2FtZQ==}}");
  const json::Value live = yaml(
      "{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {key: dHdv, kept: c2FtZQ==}}");

  const ResourceDrift one = drift_of(printed, live, kMany);

  EXPECT_EQ(one.drift, Drift::Differs);
  EXPECT_THAT(one.difference, HasSubstr("\n-  key: "));
  EXPECT_THAT(one.difference, HasSubstr("\n   kept: (withheld)\n"));
  for (const std::string_view value : {"b25l", "dHdv", "c2FtZQ"})
    EXPECT_THAT(one.difference, Not(HasSubstr(std::string(value))));
}

TEST(DriftOf, CutsALongDifferenceAfterAWholeLine) {
  const std::string whole = drift_of(deployment(2), deployment(5), kMany).difference;

  EXPECT_FALSE(drift_of(deployment(2), deployment(5), whole.size()).is_cut);
  const ResourceDrift cut = drift_of(deployment(2), deployment(5), whole.size() - 1);
  EXPECT_TRUE(cut.is_cut);
  EXPECT_TRUE(whole.starts_with(cut.difference));
  EXPECT_TRUE(cut.difference.ends_with("\n"));
  EXPECT_EQ(drift_of(deployment(2), deployment(5), 0).difference, "");
}

TEST(JsonOfDrift, HasDifferencesAndErrorsWhereTheyBelong) {
  const ReleaseDrift drift{
      .release = "r",
      .namespace_ = "n",
      .revision = 3,
      .resources = {drift_of(deployment(2), deployment(5), kMany),
                    {.ref = {.kind = {.group = "", .kind = "Role"}, .name = "a"}, .error = "no"}},
      .left_out = 1};

  const json::Value out = json_of(drift);

  EXPECT_EQ(json::int_at(out, {"revision"}), 3);
  EXPECT_EQ(json::int_at(out, {"leftOut"}), 1);
  const json::Array& resources = *json::array_at(out, {"resources"});
  EXPECT_EQ(json::string_at(resources[0], {"drift"}), "differs");
  EXPECT_THAT(json::string_at(resources[0], {"difference"}), HasSubstr("replicas"));
  EXPECT_EQ(json::dump(resources[1]), R"({"resource":"/Role:a","drift":"unknown","error":"no"})");
}

}  // namespace
}  // namespace hangar::commands
