#include "kube/urls.h"

#include "base/result.h"
#include "kube/object.h"

#include <gtest/gtest.h>

#include <string_view>

namespace hangar::kube {
namespace {

const Resource kPods{"", "v1", "pods", "Pod", true};
const Resource kRoles{"rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", false};

TEST(Urls, TellCoreFromGroupsAndClusterFromNamespaces) {
  EXPECT_EQ(collection_path(kPods, "").value(), "/api/v1/pods");
  EXPECT_EQ(collection_path(kPods, "ns").value(), "/api/v1/namespaces/ns/pods");
  EXPECT_EQ(collection_path(kRoles, "ns").value(),
            "/apis/rbac.authorization.k8s.io/v1/clusterroles");
  EXPECT_EQ(object_path(kPods, {"ns", "web"}, "status").value(),
            "/api/v1/namespaces/ns/pods/web/status");
}

TEST(Urls, EncodeWhatNamesMayHave) {
  EXPECT_EQ(object_path(kRoles, {"", "system:node?a=b#c &"}, "").value(),
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode%3Fa%3Db%23c%20%26");
}

TEST(Urls, RefuseNamesThatWouldBeAnotherPath) {
  for (const std::string_view name : {"", ".", "..", "a/b", "a%2Fstatus", "../secrets/x", "/"}) {
    const auto path = object_path(kPods, {"ns", std::string(name)}, "");

    ASSERT_FALSE(path.has_value()) << name;
    EXPECT_EQ(path.error().kind(), ErrorKind::InvalidInput);
    if (!name.empty()) {
      EXPECT_FALSE(object_path(kPods, {std::string(name), "x"}, "").has_value()) << name;
      EXPECT_FALSE(object_path(kPods, {"ns", "x"}, name).has_value()) << name;
      EXPECT_FALSE(collection_path({std::string(name), "v1", "p", "P", true}, "").has_value());
    }
  }
}

TEST(Urls, RefuseNamespacedObjectsWithoutANamespace) {
  EXPECT_FALSE(object_path(kPods, {"", "web"}, "").has_value());
}

TEST(Query, LeavesOutWhatIsEmptyAndEncodesTheRest) {
  EXPECT_EQ(Query().add("a", "").add("labelSelector", "x=y,z in (a)").add("b", "1").text(),
            "?labelSelector=x%3Dy%2Cz%20in%20%28a%29&b=1");
  EXPECT_EQ(Query().text(), "");
}

}  // namespace
}  // namespace hangar::kube
