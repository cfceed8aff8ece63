#include "recorder/holdings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hangar::recorder {
namespace {

using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

TEST(Debts, AreOnlyOfThoseAboveTheLevel) {
  EXPECT_THAT(debts({{"a", 100}, {"b", 40}, {"c", 10}}, 50), UnorderedElementsAre(Pair("a", 50)));
  // One byte more than the largest can give before the next one is as large.
  EXPECT_THAT(debts({{"a", 100}, {"b", 40}, {"c", 10}}, 60), UnorderedElementsAre(Pair("a", 60)));
  EXPECT_THAT(debts({{"a", 100}, {"b", 40}, {"c", 10}}, 61),
              UnorderedElementsAre(Pair("a", 61), Pair("b", 1)));
}

TEST(Debts, AreSharedByEquals) {
  EXPECT_THAT(debts({{"a", 50}, {"b", 50}, {"c", 1}}, 40),
              UnorderedElementsAre(Pair("a", 20), Pair("b", 20)));
}

TEST(Debts, AreAllThatIsThereAtMost) {
  EXPECT_THAT(debts({{"a", 50}, {"b", 1}}, 51), UnorderedElementsAre(Pair("a", 50), Pair("b", 1)));
  EXPECT_THAT(debts({{"a", 50}, {"b", 1}}, 1000),
              UnorderedElementsAre(Pair("a", 50), Pair("b", 1)));
  EXPECT_THAT(debts({}, 1000), IsEmpty());
  EXPECT_THAT(debts({{"a", 50}}, 0), IsEmpty());
}

TEST(HoldingsTest, HaveOnlyNamespacesThatHoldAny) {
  Holdings holdings;
  add(holdings, "a", 0);
  add(holdings, "b", 2);
  add(holdings, {{"b", 3}, {"c", 1}});
  EXPECT_THAT(holdings, UnorderedElementsAre(Pair("b", 5), Pair("c", 1)));
  subtract(holdings, {{"b", 4}, {"c", 9}, {"d", 1}});
  EXPECT_THAT(holdings, UnorderedElementsAre(Pair("b", 1)));
  EXPECT_EQ(held_by(holdings, "b"), 1U);
  EXPECT_EQ(held_by(holdings, "c"), 0U);
}

}  // namespace
}  // namespace hangar::recorder
