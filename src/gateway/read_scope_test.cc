#include "gateway/read_scope.h"

#include "gateway/request_target.h"
#include "kube/object.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hangar::gateway {
namespace {

std::optional<ReadScope> scope_of(const std::string& target, const std::string& method = "GET") {
  return ReadScope::of(parse_target(method, target).value());
}

const kube::Resource kPods{.version = "v1", .plural = "pods", .kind = "Pod", .namespaced = true};
const kube::Resource kNodes{.version = "v1", .plural = "nodes", .kind = "Node"};
const kube::Resource kNamespaces{.version = "v1", .plural = "namespaces", .kind = "Namespace"};

TEST(ReadScope, ShowsThePlaceThatIsAuthorised) {
  struct Row {
    const char* target;
    const char* asked;  // In the review: verb resource namespace/name.
    const char* seen;   // Of visible objects: namespace/name; empty: any.
  };
  const std::vector<Row> rows = {
      {"/api/v1/pods", "list pods /", "/"},
      {"/api/v1/namespaces/a/pods", "list pods a/", "a/"},
      {"/api/v1/namespaces/a/pods?watch=true", "watch pods a/", "a/"},
      {"/api/v1/watch/namespaces/a/pods", "watch pods a/", "a/"},
      {"/api/v1/namespaces/a/pods/b", "get pods a/b", "a/b"},
      {"/api/v1/nodes/b", "get nodes /b", "/b"},
      {"/api/v1/namespaces/a/namespaces", "list namespaces a/", "a/"},
      {"/api/v1/namespaces/a/namespaces/b", "get namespaces a/b", "a/b"},
      {"/api/v1/namespaces/a/pods?fieldSelector=metadata.name%3Db", "list pods a/b", "a/b"},
      // A selector narrows what is seen within the place; it does not move the place.
      {"/api/v1/pods?fieldSelector=metadata.namespace%3Da", "list pods /", "a/"},
      {"/api/v1/namespaces/a/pods?fieldSelector=metadata.namespace%3Dc", "list pods a/", "a/"},
      {"/api/v1/namespaces/a/pods/b?fieldSelector=metadata.name%3Dc", "get pods a/b", "a/b"},
  };
  for (const Row& row : rows) {
    const auto scope = scope_of(row.target);
    ASSERT_TRUE(scope.has_value()) << row.target;
    const Attributes asked = scope->attributes();
    EXPECT_EQ(asked.verb + " " + asked.resource + " " + asked.namespace_ + "/" + asked.name,
              row.asked)
        << row.target;
    EXPECT_EQ(scope->view().namespace_() + "/" + scope->view().name(), row.seen) << row.target;
  }
}

TEST(ReadScope, OfSelectorsIsOfListsAndWatchesOnly) {
  const auto list = scope_of("/api/v1/pods?labelSelector=a%3Db&fieldSelector=metadata.name%21%3DX");
  EXPECT_EQ(list->attributes().label_selector, "a=b");
  EXPECT_EQ(list->attributes().field_selector, "metadata.name!=X");
  const auto get = scope_of("/api/v1/namespaces/a/pods/b?labelSelector=a&fieldSelector=c%3Dd");
  EXPECT_EQ(get->attributes().label_selector, "");
  EXPECT_EQ(get->attributes().field_selector, "");
}

TEST(ReadScope, LeavesToTheServerWhatItCannotPlace) {
  for (const char* target : {"/version",
                             "/api/v1",
                             "/api/v1/namespaces/a",
                             "/api/v1/namespaces/a/status",
                             "/api/v1/namespaces/a/pods/b/log",
                             "/api/v1/watch/namespaces/a",
                             "/api/v1/watch/namespaces/a/pods/b",
                             "/api/v1/watch/pods?fieldSelector=metadata.name%3Db",
                             "/api/v1/watch/namespaces/a/pods?fieldSelector=metadata.name%3Db",
                             "/apis/g/v1/watch/watch",
                             "/apis/g/v1/namespaces/a/proxy",
                             "/api/v1/pods?limit=x",
                             "/api/v1/pods?limit=",
                             "/api/v1/pods?labelSelector=%21%21",
                             "/api/v1/pods?fieldSelector=a",
                             "/api/v1/pods?fieldSelector=status.phase%3DX",
                             "/api/v1/pods?watch=true&fieldSelector=metadata.name%3Da,type%21%3DX",
                             "/api/V_1/pods",
                             "/api/v1/namespaces/A_b/pods",
                             "/api/v1/pods?fieldSelector=metadata.name%3D..",
                             "/api/v1/pods?fieldSelector=metadata.name%3Da%2Fb",
                             "/api/v1/pods?watch=true&fieldSelector=metadata.name%3Da%2525"}) {
    EXPECT_FALSE(scope_of(target).has_value()) << target;
  }
  EXPECT_FALSE(scope_of("/apis/g/v" + std::string(300, '1') + "/pods").has_value());
  for (const char* method : {"HEAD", "POST", "DELETE", "PUT"})
    EXPECT_FALSE(scope_of("/api/v1/namespaces/a/pods", method).has_value()) << method;
}

TEST(ReadScope, LeavesSelectorsOfVeryManyTermsToTheServer) {
  const auto of_terms = [](const std::string& query, const std::string& term, int count) {
    std::string target = "/api/v1/pods?" + query + "=" + term;
    for (int index = 1; index < count; ++index)
      target += "," + term;
    return scope_of(target).has_value();
  };
  for (const auto& [query, term] :
       {std::pair("labelSelector", "a"), std::pair("fieldSelector", "metadata.name%21%3Da")}) {
    EXPECT_TRUE(of_terms(query, term, 32)) << query;
    EXPECT_FALSE(of_terms(query, term, 33)) << query;
  }
}

TEST(ReadScope, FitsOnlyPathsThatTheServerHas) {
  struct Row {
    const char* target;
    kube::Resource resource;
    bool fits;
  };
  const std::vector<Row> rows = {
      {"/api/v1/pods", kPods, true},
      {"/api/v1/namespaces/a/pods", kPods, true},
      {"/api/v1/namespaces/a/pods/b", kPods, true},
      {"/api/v1/pods/b", kPods, false},
      {"/api/v2/pods", kPods, false},
      {"/apis/g/v1/pods", kPods, false},
      {"/api/v1/nodes", kNodes, true},
      {"/api/v1/nodes/b", kNodes, true},
      {"/api/v1/namespaces/a/nodes", kNodes, false},
      {"/api/v1/namespaces/a/nodes?watch=true", kNodes, false},
      {"/api/v1/namespaces/a/nodes/b", kNodes, false},
      {"/api/v1/namespaces", kNamespaces, true},
      {"/api/v1/namespaces/a/namespaces", kNamespaces, false},
      {"/api/v1/namespaces/a/namespaces?watch=true", kNamespaces, false},
      {"/api/v1/namespaces/a/namespaces/a", kNamespaces, false},
      {"/api/v1/nodes?fieldSelector=metadata.name%3Db", kNodes, true},
      {"/api/v1/nodes?fieldSelector=metadata.namespace%3Db", kNodes, false},
      {"/api/v1/nodes?fieldSelector=metadata.namespace%21%3Db", kNodes, false},
  };
  for (const Row& row : rows)
    EXPECT_EQ(scope_of(row.target).value().fits(row.resource), row.fits) << row.target;
}

}  // namespace
}  // namespace hangar::gateway
