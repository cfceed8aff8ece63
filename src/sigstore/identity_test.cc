#include "sigstore/identity.h"

#include "base/result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace hangar::sigstore {
namespace {

using testing::HasSubstr;

bool matches(std::string_view pattern, std::string_view text) {
  return IdentityPattern::regexp(std::string(pattern)).value().fits(text);
}

std::string refusal(std::string_view pattern) {
  const Result<IdentityPattern> made = IdentityPattern::regexp(std::string(pattern));
  return made ? "accepted" : made.error().message();
}

TEST(Identity, ATextFitsItselfOnly) {
  const IdentityPattern pattern = IdentityPattern::exact("ci@example.com").value();
  EXPECT_TRUE(pattern.fits("ci@example.com"));
  EXPECT_FALSE(pattern.fits("ci@example.com.evil.example"));
  EXPECT_FALSE(pattern.fits("ciXexample.com"));
  EXPECT_FALSE(IdentityPattern::exact("a.c").value().fits("abc"));
}

TEST(Identity, AnExpressionFitsWholeTexts) {
  constexpr std::string_view kWorkflow =
      R"(^https://github\.com/team/[^/]+/\.github/workflows/release\.yml@refs/tags/v[0-9.]+$)";
  EXPECT_TRUE(matches(kWorkflow,
                      "https://github.com/team/web/.github/workflows/release.yml@refs/tags/v1.2"));
  EXPECT_FALSE(matches(
      kWorkflow, "https://github.com/team/web/.github/workflows/release.yml@refs/heads/main"));
  EXPECT_FALSE(matches(
      kWorkflow,
      "https://evil.example/?https://github.com/team/web/.github/workflows/release.yml@refs/tags/"
      "v1"));
  EXPECT_TRUE(matches("^(one|two)$", "two"));
  EXPECT_FALSE(matches("^(one|two)$", "two more"));
  EXPECT_FALSE(matches("^a.*$", "a\nb")) << "a text with a line break is not an identity";
  EXPECT_FALSE(matches("^a.*$", std::string_view("a\0b", 3)));
}

TEST(Identity, RefusesExpressionsThatMeanMoreThanTheySeemTo) {
  EXPECT_THAT(refusal("https://github.com/team/.*"), HasSubstr("must begin with ^ and end with $"));
  EXPECT_THAT(refusal("^a"), HasSubstr("must begin with ^ and end with $"));
  EXPECT_THAT(refusal("^a\\$"), HasSubstr("must begin with ^ and end with $"));
  EXPECT_EQ(refusal("^a\\\\$"), "accepted") << "a backslash, and the end";
  EXPECT_THAT(refusal("^a|b$"), HasSubstr("has | outside of parentheses"));
  EXPECT_THAT(refusal("^a)|b$"), HasSubstr("parenthesis without its other one"));
  EXPECT_THAT(refusal("^a)|(b$"), HasSubstr("parenthesis without its other one"));
  EXPECT_EQ(refusal("^(a|b)$"), "accepted");
  EXPECT_EQ(refusal("^[|]$"), "accepted");
  EXPECT_EQ(refusal("^\\|$"), "accepted");
}

TEST(Identity, RefusesExpressionsThatCosignReadsInAnotherWay) {
  EXPECT_THAT(refusal("^v\\d+$"), HasSubstr("write [0-9] instead of \\d"));
  EXPECT_THAT(refusal("^(a)\\1$"), HasSubstr("backslash before a digit"));
  EXPECT_THAT(refusal("^[\\w]+$"), HasSubstr("backslash in brackets"));
  EXPECT_THAT(refusal("^(?:a)$"), HasSubstr("write plain parentheses"));
  EXPECT_THAT(refusal("^.*?$"), HasSubstr("two repetitions in a row"));
  EXPECT_THAT(refusal("^*a$"), HasSubstr("a repetition of nothing"));
  EXPECT_THAT(refusal("^(+a)$"), HasSubstr("a repetition of nothing"));
  EXPECT_THAT(refusal("^\\<a$"), HasSubstr("a backslash before <"));
  EXPECT_THAT(refusal("^[[.a.]]$"), HasSubstr("[. or [= in brackets"));
  EXPECT_THAT(refusal("^\u00e9$"), HasSubstr("not ASCII"));
  EXPECT_THAT(refusal("^a{256}$"), HasSubstr("up to {255}"));
  EXPECT_THAT(refusal("^a{x}$"), HasSubstr("up to {255}"));
  EXPECT_THAT(refusal("^a{$"), HasSubstr("up to {255}"));
  EXPECT_THAT(refusal("^(a{9}){9}$"), HasSubstr("up to {255}")) << "their product takes memory";
  EXPECT_THAT(refusal("^(a$"), HasSubstr("parenthesis without its other one"));
  EXPECT_THAT(refusal("^[a$"), HasSubstr("is not a regular expression"));
  EXPECT_THAT(refusal(""), HasSubstr("must have 1 to"));
  EXPECT_THAT(refusal("^" + std::string(kIdentityBytesMax, 'a') + "$"),
              HasSubstr("must have 1 to"));
  EXPECT_EQ(refusal("^[[:alnum:]]{1,3}a{2}b{0,}\\{[]a]?(x)*$"), "accepted");
}

TEST(Identity, IsATextWithoutControlCharacters) {
  EXPECT_TRUE(is_identity("ci@example.com"));
  EXPECT_TRUE(is_identity("j\u00f6rg@example.com"));
  EXPECT_TRUE(is_identity(std::string(kIdentityBytesMax, 'a')));
  EXPECT_FALSE(is_identity(std::string(kIdentityBytesMax + 1, 'a')));
  EXPECT_FALSE(is_identity(""));
  EXPECT_FALSE(is_identity("a\x1b[31m"));
  EXPECT_FALSE(is_identity("a\xff"));
}

}  // namespace
}  // namespace hangar::sigstore
