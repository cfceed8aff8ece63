#include "budget/equal_parts.h"

#include "budget/consumer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace hangar::budget {
namespace {

const Tenant kA = Tenant::of_namespace("a");
const Tenant kB = Tenant::of_namespace("b");

TEST(EqualParts, AreOfThoseThatHoldOrClaimSome) {
  const EqualParts parts({.all_bytes = 120, .held = {{kA, 80}}, .claims = {{kA, 1}, {kB, 60}}});

  EXPECT_EQ(parts.bytes(), 60U);
  EXPECT_TRUE(parts.allow(kB, 60));
  EXPECT_FALSE(parts.allow(kB, 61));
  EXPECT_FALSE(parts.allow(kA, 1));
}

TEST(EqualParts, AreOfWhatTheHostLeaves) {
  EXPECT_EQ(EqualParts({.all_bytes = 80, .held = {{Tenant::host(), 20}, {kA, 60}}}).bytes(), 60U);
  EXPECT_EQ(
      EqualParts({.all_bytes = 80, .held = {{kA, 80}}, .claims = {{Tenant::host(), 10}}}).bytes(),
      70U);
  EXPECT_EQ(EqualParts({.all_bytes = 80, .held = {{Tenant::host(), 90}, {kA, 1}}}).bytes(), 0U);
}

TEST(EqualParts, AllowTheHostAnEighth) {
  const EqualParts parts({.all_bytes = 80, .held = {{kA, 80}}, .claims = {{Tenant::host(), 11}}});

  EXPECT_TRUE(parts.allow(Tenant::host(), 10));
  EXPECT_FALSE(parts.allow(Tenant::host(), 11));
  EXPECT_EQ(parts.bytes(), 80U) << "what is not allowed takes nothing from the others";
}

TEST(EqualParts, AllowNothingWhereThereIsNothing) {
  const EqualParts parts({});

  EXPECT_EQ(parts.bytes(), 0U);
  EXPECT_FALSE(parts.allow(kA, 1));
  EXPECT_FALSE(parts.allow(kA, std::numeric_limits<std::uint64_t>::max()));
}

}  // namespace
}  // namespace hangar::budget
