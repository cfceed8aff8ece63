#include "airways/acting.h"

#include "airways/ownership.h"
#include "base/result.h"
#include "json/value.h"
#include "reconcile/acting_rights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

namespace hangar::airways {
namespace {

using testing::HasSubstr;

const Acting kHost{};
const Acting kOfInstances{.namespace_ = "", .name = "flights"};
const Acting kCentral{.namespace_ = "platform", .name = "flights"};

json::Value airway(std::string_view account) {
  json::Value object = json::Object();
  json::set_at(object, {"metadata", "annotations", kServiceAccountAnnotation},
               json::String(account));
  return object;
}

TEST(Acting, IsAServiceAccountOfEachInstancesNamespaceOrOfOne) {
  EXPECT_EQ(parse_acting("flights"), kOfInstances);
  EXPECT_EQ(parse_acting("platform/flights"), kCentral);
  for (const std::string_view wrong : {"", "/", "a/", "/a", "a/b/c", "Flights", "a:b", "../a"}) {
    const Result<Acting> refused = parse_acting(wrong);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_THAT(refused.error().message(), HasSubstr("must be a service account"));
  }
}

TEST(Acting, IsWhatTheAirwaySaysElseTheHostsDefault) {
  EXPECT_EQ(acting_of(airway("platform/flights"), kOfInstances), kCentral);
  EXPECT_EQ(acting_of(json::Object(), kOfInstances), kOfInstances);
  EXPECT_EQ(acting_of(json::Object(), kHost), kHost);
  EXPECT_THAT(acting_of(airway("No"), kHost).error().message(),
              HasSubstr("metadata.annotations[hangar.dev/service-account]"));
}

TEST(ActorFor, IsTheHostItselfWithoutAName) {
  EXPECT_EQ(actor_for(kHost, "team").value(), Actor::host());
}

TEST(ActorFor, IsOfTheInstancesNamespaceOrOfTheOneThatIsNamed) {
  const Actor central = Actor::account({.namespace_ = "platform", .name = "flights"});
  EXPECT_EQ(actor_for(kOfInstances, "team").value(),
            Actor::account({.namespace_ = "team", .name = "flights"}));
  EXPECT_EQ(actor_for(kCentral, "team").value(), central);
  EXPECT_EQ(actor_for(kCentral, "").value(), central);
}

TEST(ActorFor, NeverActsInDefaultForAnInstanceWithoutANamespace) {
  const Result<Actor> actor = actor_for(kOfInstances, "");

  ASSERT_FALSE(actor);
  EXPECT_THAT(actor.error().message(), HasSubstr("namespace/flights"));
}

TEST(Account, SaysWhatToDoAboutARightThatIsMissing) {
  const Account account{.namespace_ = "team", .name = "flights"};
  EXPECT_THAT(
      account.advise(Error(ErrorKind::Denied, "forbidden").with_reason("Forbidden")).message(),
      HasSubstr("ServiceAccount flights of namespace team"));
  const Error not_allowed = reconcile::not_allowed_in("team", "x");
  EXPECT_EQ(account.advise(not_allowed).message(), not_allowed.message()) << "it says it already";
  EXPECT_EQ(account.advise(Error(ErrorKind::Conflict, "x")).message(), "x");
}

}  // namespace
}  // namespace hangar::airways
