#include "json/diff.h"

#include "json/limits.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::json {
namespace {

// Does what patch(1) does with a diff whose context is the whole text.
std::string patch(std::string_view diff, char dropped) {
  std::string out;
  for (std::size_t at = 0; at < diff.size();) {
    const std::size_t end = diff.find('\n', at) + 1;
    const std::string_view line = diff.substr(at, end - at);
    at = end;
    if (line.starts_with("---") || line.starts_with("+++") || line.starts_with("@@")) continue;
    if (line.front() != dropped) out += line.substr(1);
  }
  return out;
}

TEST(Diff, IsEmptyForEqualTexts) {
  EXPECT_EQ(diff_lines("a\nb\n", "a\nb\n"), "");
  EXPECT_EQ(diff_lines("", ""), "");
}

TEST(Diff, ShowsChangesWithTheirContext) {
  EXPECT_EQ(diff_lines("1\n2\n3\n4\n5\n6\n7\n8\n", "1\n2\n3\n4\nfive\n6\n7\n8\n",
                       {.context_lines = 2, .left_name = "a", .right_name = "b"}),
            "--- a\n+++ b\n@@ -3,5 +3,5 @@\n 3\n 4\n-5\n+five\n 6\n 7\n");
}

TEST(Diff, JoinsHunksThatTouchAndSplitsThoseThatDoNot) {
  const std::string left = "a\n1\n2\nb\n3\n4\n5\n6\nc\n";
  const std::string right = "A\n1\n2\nB\n3\n4\n5\n6\nC\n";

  EXPECT_EQ(diff_lines(left, right, {.context_lines = 1}),
            "--- live\n+++ wanted\n@@ -1,5 +1,5 @@\n-a\n+A\n 1\n 2\n-b\n+B\n 3\n"
            "@@ -8,2 +8,2 @@\n 6\n-c\n+C\n");
}

TEST(Diff, ShowsWholeTextsThatComeAndGo) {
  EXPECT_EQ(diff_lines("", "a\nb\n"), "--- live\n+++ wanted\n@@ -0,0 +1,2 @@\n+a\n+b\n");
  EXPECT_EQ(diff_lines("a\n", ""), "--- live\n+++ wanted\n@@ -1 +0,0 @@\n-a\n");
}

TEST(Diff, TellsAMissingLineEnd) {
  EXPECT_EQ(diff_lines("a\n", "a"),
            "--- live\n+++ wanted\n@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n");
}

TEST(Diff, TurnsOneSideIntoTheOther) {
  constexpr unsigned kSeed = 7;
  std::mt19937 random(kSeed);
  for (int round = 0; round < 300; ++round) {
    std::string left;
    std::string right;
    for (unsigned line = random() % 40; line > 0; --line)
      left += static_cast<char>('a' + random() % 4), left += '\n';
    for (unsigned line = random() % 40; line > 0; --line)
      right += static_cast<char>('a' + random() % 4), right += '\n';
    if (left == right) continue;

    const std::string diff = diff_lines(left, right, {.context_lines = 100});

    EXPECT_EQ(patch(diff, '+'), left);
    EXPECT_EQ(patch(diff, '-'), right);
  }
}

TEST(Diff, IsTheSmallest) {
  // The example in Myers' paper: five changes.
  const std::string diff = diff_lines("a\nb\nc\na\nb\nb\na\n", "c\nb\na\nb\na\nc\n");

  int changes = 0;
  for (std::size_t at = diff.find("@@\n") + 3; at < diff.size(); at = diff.find('\n', at) + 1)
    changes += diff[at] != ' ' ? 1 : 0;
  EXPECT_EQ(changes, 5);
}

TEST(Diff, ReplacesEverythingWhenTooMuchDiffers) {
  std::string left = "same\n";
  std::string right = "same\n";
  for (std::size_t line = 0; line < limits::kDiffLinesMax; ++line) {
    left += "l" + std::to_string(line) + "\n";
    right += "r" + std::to_string(line) + "\n";
  }
  left += "end\n";
  right += "end\n";

  const std::string diff = diff_lines(left, right);

  EXPECT_EQ(patch(diff, '+'), left);
  EXPECT_EQ(patch(diff, '-'), right);
}

}  // namespace
}  // namespace hangar::json
