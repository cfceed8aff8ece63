#include "gateway/caller.h"

#include "kube/client.h"

#include <gtest/gtest.h>

#include <vector>

namespace hangar::gateway {
namespace {

TEST(Caller, IsTheIdentityThatItWasMadeOf) {
  const std::vector<kube::Identity> identities = {
      {},
      {.user = "jane"},
      {.user = "jane", .groups = {"a", "b"}},
      {.user = "jane", .extra = {{"example.com/scope", {"read"}}}},
      kube::service_account("ns", "guest"),
      // The user name of a service account without its groups, or with other ones.
      {.user = "system:serviceaccount:ns:guest"},
      {.user = "system:serviceaccount:ns:guest", .groups = {"system:masters"}},
      {.user = "system:serviceaccount:guest", .groups = {"system:serviceaccounts"}},
  };
  for (const kube::Identity& identity : identities)
    EXPECT_EQ(Caller(identity).identity(), identity) << identity.user;
}

TEST(Tenant, IsTheNamespaceOfAServiceAccount) {
  EXPECT_EQ(tenant_of({.user = "system:serviceaccount:team:mirror"}), "team");
  EXPECT_EQ(tenant_of({.user = "system:serviceaccount:team"}), "team");
  EXPECT_EQ(tenant_of({.user = "system:node:a"}), "system:node:a");
  EXPECT_EQ(tenant_of({}), "");
}

}  // namespace
}  // namespace hangar::gateway
