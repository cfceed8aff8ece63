#include "airways/child_protection.h"

#include "airways/acting.h"
#include "airways/ownership.h"
#include "json/value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace hangar::airways {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kHostUser = "system:serviceaccount:hangar-system:hangar";

std::string variable(const ChildProtection& protection, std::string_view name) {
  for (const json::Value& one : *json::array_at(protection.policy, {"spec", "variables"})) {
    if (json::string_at(one, {"name"}) == name) {
      return std::string(json::string_at(one, {"expression"}));
    }
  }
  return {};
}

std::string_view scope_of(const ChildProtection& protection) {
  const json::Value& rule =
      json::array_at(protection.policy, {"spec", "matchConstraints", "resourceRules"})->front();
  return json::string_at(rule, {"scope"});
}

TEST(ChildProtection, OfEachKindHasItsOwnersAsParameters) {
  const ChildProtection airways = protection_of_airways(kHostUser, {});
  const ChildProtection flights = protection_of_flights();
  const ChildProtection cluster_flights = protection_of_cluster_flights(kHostUser);

  for (const auto* one : {&airways, &flights, &cluster_flights}) {
    const std::string_view name = json::string_at(one->policy, {"metadata", "name"});
    EXPECT_EQ(json::string_at(one->binding, {"metadata", "name"}), name);
    EXPECT_EQ(json::string_at(one->binding, {"spec", "policyName"}), name);
    EXPECT_EQ(json::string_at(one->policy, {"spec", "failurePolicy"}), "Ignore") << name;
  }
  EXPECT_EQ(json::string_at(airways.policy, {"spec", "paramKind", "kind"}), "Airway");
  EXPECT_EQ(json::string_at(flights.policy, {"spec", "paramKind", "kind"}), "Flight");
  EXPECT_EQ(json::string_at(cluster_flights.policy, {"spec", "paramKind", "kind"}),
            "ClusterFlight");
  // The parameters of a namespaced kind are those of the child's namespace.
  EXPECT_EQ(scope_of(flights), "Namespaced");
  EXPECT_EQ(scope_of(airways), "*");
  EXPECT_EQ(scope_of(cluster_flights), "*");
}

TEST(ChildProtection, ConcernsTheChildrenOfThatFlightOnly) {
  EXPECT_THAT(variable(protection_of_flights(), "concerned"),
              HasSubstr("variables.release == params.metadata.namespace + '/Flight.yoke.cd:' + "
                        "params.metadata.name"));
  EXPECT_THAT(variable(protection_of_cluster_flights(kHostUser), "concerned"),
              HasSubstr("variables.release == '' + '/ClusterFlight.yoke.cd:' + "
                        "params.metadata.name"));
}

TEST(ChildProtection, ExemptsTheAccountThatAppliesTheRelease) {
  EXPECT_THAT(variable(protection_of_flights(), "account"), HasSubstr(": 'default')"));
  EXPECT_THAT(variable(protection_of_flights(), "applier"), Not(HasSubstr(kHostUser)));
  EXPECT_THAT(variable(protection_of_cluster_flights(kHostUser), "applier"), HasSubstr(kHostUser));
  const Acting deployer{.namespace_ = "team", .name = "deployer"};
  EXPECT_THAT(variable(protection_of_airways(kHostUser, deployer), "account"),
              AllOf(HasSubstr(": 'team/deployer')"), HasSubstr("!= ''")))
      << "an empty annotation names no account";
}

TEST(ChildProtection, TakesAModeFromChildrenOfAirwaysOnly) {
  EXPECT_THAT(variable(protection_of_airways(kHostUser, {}), "override"),
              AllOf(HasSubstr("'f:hangar.dev/mode' in"), HasSubstr("m.manager == 'yoke'")))
      << "anybody may create an object with the annotation";
  EXPECT_EQ(variable(protection_of_flights(), "override"), "''");
  EXPECT_EQ(variable(protection_of_cluster_flights(kHostUser), "override"), "''");
}

TEST(ChildProtection, EndsOnceADeletionWasAccepted) {
  for (const ChildProtection& one : {protection_of_airways(kHostUser, {}), protection_of_flights(),
                                     protection_of_cluster_flights(kHostUser)}) {
    EXPECT_EQ(variable(one, "fixed"),
              "variables.concerned && variables.mode == 'static' && "
              "!has(oldObject.metadata.deletionTimestamp)")
        << "the proposed object does not tell whether the stored one is being deleted";
    const json::Array& validations = *json::array_at(one.policy, {"spec", "validations"});
    ASSERT_EQ(validations.size(), 3U);
    for (const std::size_t index : {1U, 2U}) {
      EXPECT_THAT(std::string(json::string_at(validations[index], {"expression"})),
                  HasSubstr("!variables.fixed"));
    }
  }
}

TEST(ChildProtection, KeepsTheMarksOfEveryChild) {
  for (const ChildProtection& one : {protection_of_airways(kHostUser, {}), protection_of_flights(),
                                     protection_of_cluster_flights(kHostUser)}) {
    const json::Value& marks = json::array_at(one.policy, {"spec", "validations"})->front();
    const std::string_view expression = json::string_at(marks, {"expression"});
    for (const std::string_view key :
         {kReleaseAnnotation, kNamespaceAnnotation, kInstanceRefAnnotation, kModeAnnotation}) {
      EXPECT_THAT(expression, HasSubstr(key));
    }
  }
}

}  // namespace
}  // namespace hangar::airways
