#include "modules/internal/percent.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

namespace hangar::modules::internal {
namespace {

TEST(PercentDecode, DecodesEscapesOfTwoHexadecimalDigits) {
  EXPECT_EQ(percent_decode("a%2Fb%2f%41"), "a/b/A");
  EXPECT_EQ(percent_decode(""), "");
  for (const std::string_view cut : {"%", "%4", "a%", "%4g", "%g4", "%%41", "%+1"})
    EXPECT_EQ(percent_decode(cut), std::nullopt) << cut;
}

TEST(PercentDecode, RefusesEscapesOfBytesThatAreNotAllowedAndNotTheBytesThemselves) {
  EXPECT_EQ(percent_decode("a/b%20c", "/"), "a/b c");
  EXPECT_EQ(percent_decode("a%2fb", "/"), std::nullopt);
  EXPECT_EQ(percent_decode("a%00b", std::string_view("\0", 1)), std::nullopt);
  EXPECT_EQ(percent_decode("a%00b"), std::string("a\0b", 3));
}

}  // namespace
}  // namespace hangar::modules::internal
