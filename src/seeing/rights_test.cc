#include "seeing/rights.h"

#include <gtest/gtest.h>

namespace hangar::seeing {
namespace {

TEST(MissingRight, IsSaidAsAnAdministratorGivesIt) {
  const kube::Resource operators{
      .group = "hangar.dev", .version = "v1alpha1", .plural = "operators", .namespaced = true};
  EXPECT_EQ(missing_right("jane", "get", operators, {.namespace_ = "team", .name = "mirror"}),
            "user \"jane\" may not get operators.hangar.dev \"mirror\" in namespace \"team\"");
  EXPECT_EQ(missing_right("jane", "list", operators, {}),
            "user \"jane\" may not list operators.hangar.dev in all namespaces");
  EXPECT_EQ(missing_right("jane", "get", {.plural = "nodes"}, {.name = "a"}),
            "user \"jane\" may not get nodes \"a\"");
}

}  // namespace
}  // namespace hangar::seeing
