#include "base/text.h"

#include <gtest/gtest.h>

#include <string_view>

namespace hangar {
namespace {

using std::string_view_literals::operator""sv;

TEST(Text, LowersLettersOfAsciiOnly) {
  EXPECT_EQ(to_lower("Content-TYPE [@`{] \xc3\x84"), "content-type [@`{] \xc3\x84");
}

TEST(Text, ComparesWithoutCase) {
  EXPECT_TRUE(equals_ignoring_case("Content-Type", "content-tYPE"));
  EXPECT_FALSE(equals_ignoring_case("Content-Type", "Content-Typ"));
  EXPECT_FALSE(equals_ignoring_case("@", "`"));
}

TEST(Text, FindsControlCharacters) {
  for (const std::string_view text : {"a\nb"sv, "\0"sv, "a\x1f"sv, "\x7f"sv}) {
    EXPECT_TRUE(has_control_character(text));
  }
  for (const std::string_view text : {""sv, " ~"sv, "\x80\xff"sv}) {
    EXPECT_FALSE(has_control_character(text));
  }
}

TEST(Text, IsPrintableWithinABound) {
  EXPECT_EQ(printable("abc", 3), "abc");
  EXPECT_EQ(printable("abcd", 3), "abc...");
  EXPECT_EQ(printable("a\x1b", 4), "a\\x1...");
}

}  // namespace
}  // namespace hangar
