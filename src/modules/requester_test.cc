#include "modules/requester.h"

#include "base/result.h"

#include <gtest/gtest.h>

namespace hangar::modules {
namespace {

TEST(Requester, InANamespaceReachesConfigMapsOfThatNamespaceOnly) {
  const Requester tenant = Requester::in_namespace("team");

  EXPECT_EQ(tenant.config_maps_of("team")->namespace_name(), "team");
  for (const char* const other : {"other", "Team", "team-2", "tea", ""}) {
    const Result<ConfigMapAccess> access = tenant.config_maps_of(other);
    ASSERT_FALSE(access.has_value()) << other;
    EXPECT_EQ(access.error().kind(), ErrorKind::Denied);
  }
}

TEST(Requester, WithoutANamespaceOfItsOwnIsNotAnAdministrator) {
  EXPECT_FALSE(Requester::in_namespace("").config_maps_of("team").has_value());
}

TEST(Requester, OfTheWholeClusterReachesEveryNamespace) {
  EXPECT_EQ(Requester::cluster_wide().config_maps_of("team")->namespace_name(), "team");
}

}  // namespace
}  // namespace hangar::modules
