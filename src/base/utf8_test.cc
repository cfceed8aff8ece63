#include "base/utf8.h"

#include <gtest/gtest.h>

#include <string_view>

namespace hangar {
namespace {

TEST(Utf8, AcceptsTheBoundsOfEveryLength) {
  for (const std::string_view text : {"", "a", "\x7f", "\u0080", "\u07ff", "\u0800", "\xed\x9f\xbf",
                                      "\ue000", "\uffff", "\U00010000", "\U0010ffff"}) {
    EXPECT_EQ(valid_utf8_prefix(text), text.size()) << text;
  }
}

TEST(Utf8, StopsAtTheFirstByteThatIsNoText) {
  struct Case {
    std::string_view name;
    std::string_view bytes;
  };
  for (const Case& one : {Case{"lone continuation", "ab\x80"}, Case{"overlong 2", "ab\xc0\xaf"},
                          Case{"overlong 3", "ab\xe0\x9f\xbf"}, Case{"surrogate", "ab\xed\xa0\x80"},
                          Case{"overlong 4", "ab\xf0\x8f\xbf\xbf"},
                          Case{"past the last", "ab\xf4\x90\x80\x80"}, Case{"never", "ab\xff"},
                          Case{"cut", "ab\xe2\x82"}, Case{"broken third", "ab\xe2\x82\x41"}}) {
    EXPECT_EQ(valid_utf8_prefix(one.bytes), 2U) << one.name;
  }
}

TEST(Utf8, IsCutBetweenCharacters) {
  constexpr std::string_view kText = "a\u20acb";  // The euro sign has three bytes.

  EXPECT_EQ(utf8_beginning(kText, 5), kText);
  EXPECT_EQ(utf8_beginning(kText, 4), "a\u20ac");
  EXPECT_EQ(utf8_beginning(kText, 3), "a");
  EXPECT_EQ(utf8_beginning(kText, 2), "a");
  EXPECT_EQ(utf8_beginning(kText, 0), "");
  EXPECT_EQ(utf8_end(kText, 5), kText);
  EXPECT_EQ(utf8_end(kText, 4), "\u20acb");
  EXPECT_EQ(utf8_end(kText, 3), "b");
  EXPECT_EQ(utf8_end(kText, 0), "");
}

TEST(Utf8, IsCutWithinItsBoundsWhateverItsBytesAre) {
  constexpr std::string_view kContinuations = "\x80\x80\x80\x80";

  EXPECT_EQ(utf8_beginning(kContinuations, 3), "");
  EXPECT_EQ(utf8_end(kContinuations, 3), "");
}

}  // namespace
}  // namespace hangar
