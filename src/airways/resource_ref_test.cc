#include "airways/resource_ref.h"

#include "json/yaml.h"

#include <gtest/gtest.h>

#include <unordered_set>

namespace hangar::airways {
namespace {

json::Value yaml(std::string_view text) {
  return json::parse_yaml(text).value();
}

TEST(ResourceRef, IsWrittenAsYokeWritesIt) {
  struct Case {
    std::string_view name;
    ResourceRef ref;
    std::string_view text;
  };
  const Case cases[] = {
      {"grouped", {{"apps", "Deployment"}, "default", "web"}, "default/Deployment.apps:web"},
      {"core", {{"", "Secret"}, "default", "token"}, "default/Secret:token"},
      {"cluster scoped", {{"", "Namespace"}, "", "team"}, "/Namespace:team"},
      {"dots in the group", {{"examples.com", "Backend"}, "a", "b"}, "a/Backend.examples.com:b"},
      {"colon in the name",
       {{"rbac.authorization.k8s.io", "ClusterRole"}, "", "system:basic"},
       "/ClusterRole.rbac.authorization.k8s.io:system:basic"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(c.ref.to_string(), c.text);
    const Result<ResourceRef> read = parse_ref(c.text);
    ASSERT_TRUE(read);
    EXPECT_EQ(*read, c.ref);
  }
}

TEST(ResourceRef, RefusesWhatIsNoRef) {
  for (const std::string_view text : {"", "/", "web", "default/web", "default/:web",
                                      "default/Secret:", "default/Secret.:a", "Secret:a"}) {
    SCOPED_TRACE(text);
    const Result<ResourceRef> read = parse_ref(text);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().kind(), ErrorKind::InvalidInput);
  }
}

TEST(ResourceRef, DoesNotTellVersionsOfAKindApart) {
  const ResourceRef v1 =
      ref_of(yaml("{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}"));
  const ResourceRef v2 =
      ref_of(yaml("{apiVersion: apps/v1beta1, kind: Deployment, metadata: {name: a}}"));

  EXPECT_EQ(v1, v2);
  EXPECT_EQ(std::hash<ResourceRef>{}(v1), std::hash<ResourceRef>{}(v2));
}

TEST(ResourceRef, HashesNamespaceAndNameDifferently) {
  const std::unordered_set<std::size_t> hashes = {std::hash<ResourceRef>{}({{"", "A"}, "b", "c"}),
                                                  std::hash<ResourceRef>{}({{"", "A"}, "c", "b"}),
                                                  std::hash<ResourceRef>{}({{"A", ""}, "b", "c"})};

  EXPECT_EQ(hashes.size(), 3U);
}

TEST(CanonicalName, IsWhatYokesErrorsSay) {
  EXPECT_EQ(canonical_name(yaml("{apiVersion: apps/v1, kind: Deployment, metadata: {name: Web, "
                                "namespace: default}}")),
            "default/apps/v1/deployment/web");
  EXPECT_EQ(canonical_name(yaml("{apiVersion: v1, kind: Namespace, metadata: {name: foo}}")),
            "_/core/v1/namespace/foo");
}

}  // namespace
}  // namespace hangar::airways
