#include "budget/shares.h"

#include "budget/consumer.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>

namespace hangar::budget {
namespace {

// Takes as many places as the rule allows.
std::size_t take_all(Shares& shares, const std::string& namespace_name) {
  const Tenant tenant = Tenant::of_namespace(namespace_name);
  std::size_t taken = 0;
  for (; shares.may_take(tenant); ++taken)
    shares.take(tenant);
  return taken;
}

TEST(Shares, OneTenantAloneMayHoldHalf) {
  for (const std::size_t places : {1U, 2U, 3U, 8U, 32U}) {
    Shares shares(places);

    EXPECT_EQ(take_all(shares, "a"), (places + 1) / 2) << places;
  }
}

TEST(Shares, ATenantThatWasIdleFindsAPlaceBesideGreedyOnes) {
  Shares shares(32);
  take_all(shares, "a");
  take_all(shares, "b");
  take_all(shares, "c");

  EXPECT_TRUE(shares.may_take(Tenant::of_namespace("d")));
}

TEST(Shares, WhatIsGivenBackCanBeTaken) {
  Shares shares(1);
  const Tenant a = Tenant::of_namespace("a");
  const Tenant b = Tenant::of_namespace("b");
  shares.take(a);
  EXPECT_FALSE(shares.may_take(b));

  shares.give_back(a);

  EXPECT_TRUE(shares.may_take(b));
  EXPECT_EQ(shares.held_count(a), 0U);
  EXPECT_EQ(shares.free_count(), 1U);
}

}  // namespace
}  // namespace hangar::budget
