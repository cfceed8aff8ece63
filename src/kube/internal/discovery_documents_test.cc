#include "kube/internal/discovery_documents.h"

#include "json/value.h"
#include "kube/object.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

namespace hangar::kube::internal {
namespace {

using ::testing::ElementsAre;

json::Value parse(std::string_view text) {
  return json::parse(text).value();
}

TEST(AggregatedDiscovery, ListsVersionsInTheServersOrder) {
  const auto groups = parse_aggregated(parse(R"({"kind":"APIGroupDiscoveryList","items":[
    {"metadata":{"name":"a.io"},"versions":[
      {"version":"v2","freshness":"Current","resources":[
        {"resource":"things","responseKind":{"group":"","version":"","kind":"Thing"},
         "scope":"Namespaced"},
        {"resource":"parts","scope":"Cluster","subresources":[{"subresource":"x"}]}]},
      {"version":"v1","resources":[
        {"resource":"things","responseKind":{"kind":"Thing"},"scope":"Cluster"}]}]},
    {"metadata":{"name":"down.io"},"versions":[{"version":"v1","freshness":"Stale"}]}]})"));

  ASSERT_TRUE(groups.has_value());
  ASSERT_EQ(groups->size(), 1);
  const ServedGroup& group = groups->at("a.io");
  ASSERT_EQ(group.size(), 2);
  EXPECT_THAT(group[0].resources, ElementsAre(Resource{"a.io", "v2", "things", "Thing", true}));
  EXPECT_THAT(group[1].resources, ElementsAre(Resource{"a.io", "v1", "things", "Thing", false}));
}

TEST(AggregatedDiscovery, IsNotWhatOlderServersAnswer) {
  EXPECT_FALSE(parse_aggregated(parse(R"({"kind":"APIGroupList","groups":[]})")).has_value());
  EXPECT_FALSE(parse_aggregated(parse("[]")).has_value());
}

TEST(DiscoveryByGroup, PutsThePreferredVersionFirst) {
  EXPECT_THAT(parse_versions(parse(R"({"kind":"APIGroup","versions":[{"version":"v1beta1"},
        {"version":"v2"},{"version":"v1"}],"preferredVersion":{"version":"v1"}})")),
              ElementsAre("v1", "v1beta1", "v2"));
  EXPECT_THAT(parse_versions(parse(R"({"kind":"APIVersions","versions":["v1"]})")),
              ElementsAre("v1"));
}

TEST(DiscoveryByGroup, LeavesOutSubresources) {
  EXPECT_THAT(parse_resources(parse(R"({"resources":[{"name":"pods","kind":"Pod","namespaced":true},
    {"name":"pods/status","kind":"Pod","namespaced":true},{"name":"nodes","kind":"Node"}, 1]})"),
                              "", "v1"),
              ElementsAre(Resource{"", "v1", "pods", "Pod", true},
                          Resource{"", "v1", "nodes", "Node", false}));
}

}  // namespace
}  // namespace hangar::kube::internal
