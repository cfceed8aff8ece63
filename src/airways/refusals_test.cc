#include "airways/refusals.h"

#include "reconcile/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>

namespace hangar::airways {
namespace {

using testing::EndsWith;
using testing::StartsWith;

TEST(Refusals, SayAllOfAFew) {
  Refusals refusals;
  EXPECT_TRUE(refusals.is_empty());
  refusals.add("a: no");
  EXPECT_EQ(refusals.to_string(), "a: no");
  refusals.add("b: never");
  EXPECT_EQ(refusals.to_string(), "a: no; b: never");
  EXPECT_EQ(refusals.count(), 2U);
}

TEST(Refusals, OfThousandsTakeNoMoreThanACondition) {
  constexpr std::size_t kMessageBytes = 8192;
  Refusals refusals;
  for (int index = 0; index < 5000; ++index)
    refusals.add(std::string(kMessageBytes, 'x'));

  const std::string text = refusals.to_string();
  EXPECT_LT(text.size(), limits::kConditionMessageBytesMax + 2 * kMessageBytes);
  EXPECT_THAT(text, StartsWith("xxx"));
  EXPECT_THAT(text, EndsWith("; and 4996 others"));
}

}  // namespace
}  // namespace hangar::airways
