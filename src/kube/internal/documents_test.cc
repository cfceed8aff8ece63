#include "kube/internal/documents.h"

#include "base/consumer.h"

#include <gtest/gtest.h>

namespace hangar::kube::internal {
namespace {

TEST(Documents, AreReadInTheNameOfWhoAsksElseOfTheirNamespace) {
  EXPECT_EQ(reader_of("system:serviceaccount:team:mirror", "other").tenant,
            Tenant::of_namespace("team"));
  EXPECT_EQ(reader_of("somebody", "other").tenant, Tenant::of_namespace("other"));
  EXPECT_EQ(reader_of("", "other").tenant, Tenant::of_namespace("other"));
  EXPECT_EQ(reader_of("", "").tenant, Tenant::of_namespace("")) << "and not of the host";
}

TEST(Documents, HaveTheNamespaceOfTheirPath) {
  EXPECT_EQ(namespace_in("/api/v1/namespaces/team/secrets/a"), "team");
  EXPECT_EQ(namespace_in("/apis/apps/v1/namespaces/team/deployments?limit=5"), "team");
  EXPECT_EQ(namespace_in("/api/v1/secrets"), "");
  EXPECT_EQ(namespace_in("/api/v1/secrets?fieldSelector=a%3D/namespaces/team/b"), "");
}

}  // namespace
}  // namespace hangar::kube::internal
