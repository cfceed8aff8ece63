#include "base/number.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace hangar {
namespace {

TEST(ParseNumberTest, ReadsAllOfAText) {
  EXPECT_EQ(parse_number<int>("0"), 0);
  EXPECT_EQ(parse_number<int>("007"), 7);
  EXPECT_EQ(parse_number<std::int64_t>("-9223372036854775808"),
            std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(parse_number<std::uint64_t>("18446744073709551615"),
            std::numeric_limits<std::uint64_t>::max());
  // The text need not end with a zero byte.
  EXPECT_EQ(parse_number<std::uint16_t>(std::string_view("65535x").substr(0, 5)), 65535);
}

TEST(ParseNumberTest, RefusesOtherText) {
  for (const std::string_view text : {"", " 1", "1 ", "+1", "1x", "0x1", "1.0", "1e3", "-"}) {
    EXPECT_EQ(parse_number<std::int64_t>(text), std::nullopt) << text;
  }
  EXPECT_EQ(parse_number<std::uint32_t>("-1"), std::nullopt);
  EXPECT_EQ(parse_number<std::string_view::size_type>(std::string_view()), std::nullopt);
}

TEST(ParseNumberTest, RefusesWhatDoesNotFit) {
  EXPECT_EQ(parse_number<std::uint16_t>("65536"), std::nullopt);
  EXPECT_EQ(parse_number<std::int64_t>("9223372036854775808"), std::nullopt);
}

}  // namespace
}  // namespace hangar
