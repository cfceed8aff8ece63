#include "archive/copies.h"

#include <gtest/gtest.h>

#include <optional>

namespace hangar::archive {
namespace {

TEST(Copies, ATenantIsGivenThoseOfItsOwnNamespaceOnly) {
  EXPECT_EQ(namespace_for("", "team"), "team");
  EXPECT_EQ(namespace_for("hangar-system", "team"), std::nullopt);
  EXPECT_EQ(namespace_for("hangar-system", "hangar-system"), std::nullopt)
      << "not even in the host's namespace";
}

TEST(Copies, WhatIsOfTheClusterIsGivenThoseOfTheHostOnly) {
  EXPECT_EQ(namespace_for("hangar-system", ""), "hangar-system");
  EXPECT_EQ(namespace_for("", ""), std::nullopt) << "no tenant's copy";
}

}  // namespace
}  // namespace hangar::archive
