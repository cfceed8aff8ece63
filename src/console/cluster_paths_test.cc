#include "console/cluster_paths.h"

#include "console/projection.h"
#include "gateway/request_target.h"
#include "json/value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace hangar::console {
namespace {

using ::testing::HasSubstr;

Result<ClusterGet> get(std::string_view text) {
  const Result<gateway::RequestTarget> target = gateway::parse_target("GET", text);
  if (!target) return std::unexpected(target.error());
  return cluster_get(*target);
}

TEST(ClusterPaths, PassesOnWhatThePageShows) {
  const auto operators = get("/apis/hangar.dev/v1alpha1/operators?limit=100&continue=abc");
  ASSERT_TRUE(operators) << operators.error().message();
  EXPECT_EQ(operators->target, "/apis/hangar.dev/v1alpha1/operators?continue=abc&limit=100");
  EXPECT_EQ(operators->airway, "");

  const auto one = get("/apis/workflows.example.com/v1/namespaces/a/statefulworkflows/b");
  ASSERT_TRUE(one) << one.error().message();
  EXPECT_EQ(one->target, "/apis/workflows.example.com/v1/namespaces/a/statefulworkflows/b");

  const auto events = get("/api/v1/namespaces/a/events?fieldSelector=involvedObject.uid%3D12-34");
  ASSERT_TRUE(events) << events.error().message();
  EXPECT_THAT(events->target, HasSubstr("fieldSelector=involvedObject.uid"));
}

TEST(ClusterPaths, ListsAreAlwaysLimited) {
  EXPECT_THAT(get("/apis/yoke.cd/v1alpha1/flights")->target, HasSubstr("limit=500"));
  for (const char* const limit : {"0", "-1", "501", "many"}) {
    EXPECT_FALSE(get(std::string("/apis/yoke.cd/v1alpha1/flights?limit=") + limit)) << limit;
  }
}

TEST(ClusterPaths, RefusesEverythingElse) {
  for (const char* const path : {
           "/api/v1/secrets",
           "/api/v1/namespaces/a/secrets/b",
           "/api/v1/namespaces/a/serviceaccounts",
           "/api/v1/namespaces/a/pods/b/log",
           "/api/v1/namespaces/a/pods/b/exec?command=sh",
           "/api/v1/nodes/x/proxy/metrics",
           "/api/v1/namespaces/a",
           "/apis/rbac.authorization.k8s.io/v1/clusterroles",
           "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
           "/apis/apps/v1/namespaces/a/deployments/b/scale",
           "/apis/apps/v1/namespaces/a/replicasets",
           "/apis/hangar.dev/v1alpha1/operators?watch=true",
           "/apis/hangar.dev/v1alpha1/watch/operators",
           "/apis/hangar.dev/v1alpha1/namespaces/a/operators/b/status",
           "/apis/hangar.dev/v1alpha1/operators?labelSelector=a",
           "/apis/hangar.dev/v1alpha1/operators?fieldSelector=metadata.name%3Da",
           "/api/v1/namespaces/a/events?fieldSelector=type%3DWarning",
           "/version",
           "/metrics",
           "/apis/hangar.dev/v1alpha1/somethings",
           "/",
           "/apis/hangar.dev/v1alpha1/operators/",
           "/apis/hangar.dev/v1alpha1/namespaces/../operators",
           "/apis/hangar.dev/v1alpha1/namespaces/a%2F..%2Fb/operators",
           "/api/v1/namespaces/a/pods/..",
       }) {
    EXPECT_FALSE(get(path)) << path;
  }
}

TEST(ClusterPaths, OtherGroupsArePassedOnAsInstancesOfAnAirway) {
  const auto instances = get("/apis/examples.com/v1/namespaces/a/backends");
  ASSERT_TRUE(instances) << instances.error().message();
  EXPECT_EQ(instances->airway, "backends.examples.com");

  EXPECT_FALSE(get("/apis/cert-manager.k8s.io/v1/certificates"));
  EXPECT_FALSE(get("/apis/policy/v1/poddisruptionbudgets"));
}

TEST(ConsoleProjection, ContentOfConfigMapsAndPodsStaysOutOfTheBrowser) {
  json::Value answer = *json::parse(R"({"items": [{"metadata": {"name": "a", "managedFields": [1],
      "annotations": {"x": "secret"}}, "data": {"password": "secret"},
      "spec": {"replicas": 2, "containers": [{"env": "secret"}]}, "status": {"phase": "Bound"}}]})");

  project(answer, "", "configmaps");

  const std::string text = json::dump(answer);
  EXPECT_EQ(text.find("secret"), std::string::npos) << text;
  EXPECT_EQ(
      text,
      R"({"items":[{"metadata":{"name":"a"},"status":{"phase":"Bound"},"spec":{"replicas":2}}]})");
}

TEST(ConsoleProjection, ObjectsOfHangarStayWithoutManagedFields) {
  json::Value object = *json::parse(R"({"kind": "Operator", "metadata": {"name": "a",
      "managedFields": [1], "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "x",
      "keep": "y"}}, "spec": {"module": {}}})");

  project(object, "hangar.dev", "operators");

  EXPECT_EQ(json::dump(object), R"({"kind":"Operator","metadata":{"name":"a",)"
                                R"("annotations":{"keep":"y"}},"spec":{"module":{}}})");
}

}  // namespace
}  // namespace hangar::console
