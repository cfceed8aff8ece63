#include "budget/stepped_reservation.h"

#include "budget/accounts.h"
#include "budget/consumer.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

namespace hangar::budget {
namespace {

SteppedReservation reservation(Accounts& accounts, std::string namespace_name, std::string name) {
  return {accounts,
          {.tenant = Tenant::of_namespace(std::move(namespace_name)), .name = std::move(name)},
          10};
}

TEST(SteppedReservation, CountsWholeSteps) {
  Accounts accounts({});
  SteppedReservation held = reservation(accounts, "a", "one");

  EXPECT_EQ(held.set(9), std::nullopt);
  EXPECT_EQ(accounts.held_bytes(), 0U);
  EXPECT_EQ(held.set(31), std::nullopt);
  EXPECT_EQ(accounts.held_bytes(), 30U);
  EXPECT_EQ(held.set(20), std::nullopt);
  EXPECT_EQ(accounts.held_bytes(), 20U);
  EXPECT_EQ(held.set(0), std::nullopt);
  EXPECT_EQ(accounts.held_bytes(), 0U);
}

TEST(SteppedReservation, OfSeveralConsumersIsBoundedForTheirTenant) {
  Accounts accounts({.tenant_bytes_max = 40});
  SteppedReservation first = reservation(accounts, "a", "one");
  SteppedReservation second = reservation(accounts, "a", "two");
  SteppedReservation other = reservation(accounts, "b", "one");

  EXPECT_EQ(first.set(30), std::nullopt);
  EXPECT_EQ(second.set(19), std::nullopt);
  const std::optional<Shortage> shortage = second.set(20);

  ASSERT_TRUE(shortage.has_value());
  EXPECT_EQ(shortage->level, Shortage::Level::Tenant);
  EXPECT_EQ(second.set(15), std::nullopt);
  EXPECT_EQ(other.set(40), std::nullopt);
  EXPECT_EQ(accounts.held_bytes(), 80U) << "a shortage changes nothing";
}

TEST(SteppedReservation, IsGivenBackWhenItEnds) {
  Accounts accounts({});
  {
    SteppedReservation held = reservation(accounts, "a", "one");
    EXPECT_EQ(held.set(100), std::nullopt);
  }
  EXPECT_EQ(accounts.held_bytes(), 0U);
}

}  // namespace
}  // namespace hangar::budget
