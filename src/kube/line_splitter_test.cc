#include "kube/line_splitter.h"

#include "base/result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::kube {
namespace {

using ::testing::ElementsAre;

struct Lines {
  std::vector<std::string> seen;
  auto collect() {
    return [this](std::string_view line) -> Result<> {
      seen.emplace_back(line);
      return {};
    };
  }
};

TEST(LineSplitter, GivesTheSameLinesHoweverTheStreamIsCut) {
  constexpr std::string_view kStream = "one\n\ntwo two\nthree\nunended";
  for (std::size_t step = 1; step <= kStream.size(); ++step) {
    LineSplitter splitter(100);
    Lines lines;

    for (std::size_t at = 0; at < kStream.size(); at += step) {
      ASSERT_TRUE(splitter.feed(kStream.substr(at, step), lines.collect()).has_value());
    }

    EXPECT_THAT(lines.seen, ElementsAre("one", "two two", "three")) << step;
  }
}

TEST(LineSplitter, HoldsMemoryOnlyWithinALine) {
  LineSplitter splitter(10'000);
  Lines lines;

  ASSERT_TRUE(splitter.feed("whole\n" + std::string(5'000, 'x'), lines.collect()).has_value());
  EXPECT_GE(splitter.held_bytes(), 5'000U);
  ASSERT_TRUE(splitter.feed("x\n", lines.collect()).has_value());
  EXPECT_EQ(splitter.held_bytes(), 0U);
  ASSERT_TRUE(splitter.feed("x", lines.collect()).has_value());
  EXPECT_LT(splitter.held_bytes(), 100U) << "the long line's memory is free";
}

TEST(LineSplitter, RefusesALineOneByteTooLong) {
  for (const bool at_once : {true, false}) {
    LineSplitter fits(4);
    LineSplitter refuses(4);
    Lines lines;
    const auto feed = [&](LineSplitter& splitter, std::string_view text) {
      if (at_once) return splitter.feed(text, lines.collect());
      for (const char& character : text) {
        if (auto fed = splitter.feed({&character, 1}, lines.collect()); !fed) return fed;
      }
      return Result<>();
    };

    EXPECT_TRUE(feed(fits, "1234\n").has_value());
    const auto refused = feed(refuses, "12345\n");

    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().kind(), ErrorKind::LimitExceeded);
  }
}

TEST(LineSplitter, EndsWithTheErrorOfItsReader) {
  LineSplitter splitter(100);
  int calls = 0;

  const auto fed = splitter.feed("a\nb\n", [&calls](std::string_view) -> Result<> {
    ++calls;
    return fail(ErrorKind::Expired, "gone");
  });

  EXPECT_EQ(fed.error().kind(), ErrorKind::Expired);
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace hangar::kube
