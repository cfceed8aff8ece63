#include "seeing/callers.h"

#include <gtest/gtest.h>

namespace hangar::seeing {
namespace {

TEST(Sharer, IsTheNamespaceOfAServiceAccount) {
  EXPECT_EQ(sharer_of("system:serviceaccount:team:a"), sharer_of("system:serviceaccount:team:b"));
  EXPECT_NE(sharer_of("system:serviceaccount:team:a"), sharer_of("system:serviceaccount:others:a"));
  EXPECT_NE(sharer_of("system:serviceaccount:team:a"), sharer_of("team"));
}

TEST(Sharer, IsTheUserElse) {
  EXPECT_EQ(sharer_of("jane"), "jane");
  EXPECT_NE(sharer_of("team:jane"), sharer_of("team:joe"));
}

}  // namespace
}  // namespace hangar::seeing
