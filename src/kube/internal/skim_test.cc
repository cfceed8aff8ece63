#include "kube/internal/skim.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace hangar::kube::internal {
namespace {

TEST(Skim, EndsAtTheFirstMistakeWhereverTheTextIsCut) {
  constexpr std::string_view kWhole =
      R"({"a": [1, -2.5e+3, true, null, "x\n\u00e9\ud83d\ude00"], "b": {"c": {}, "d": []}})";
  ASSERT_EQ(Skim(kWhole).value(), kWhole);

  for (std::size_t size = 0; size < kWhole.size(); ++size) {
    // A copy of exactly that size, so that a sanitizer detects a read beyond its end.
    const std::string cut(kWhole.substr(0, size));
    Skim skim(cut);
    skim.value();

    EXPECT_FALSE(skim.finish().has_value()) << cut;
  }
}

TEST(Skim, ReadsMembersInAnyOrderAndPassesOverTheRest) {
  Skim skim(R"({"skipped":[{"name":"no"}],"name":"a\"b","nothing":null})");
  std::string name;
  for (auto members = skim.object(); const auto key = skim.next_key(members);) {
    if (*key == "name") {
      name = skim.string();
    } else {
      skim.value();
    }
  }

  EXPECT_TRUE(skim.finish().has_value());
  EXPECT_EQ(name, "a\"b");
}

TEST(Skim, RefusesDeepNestingBeforeTheStackEnds) {
  const std::string deep(1'000'000, '[');
  Skim deep_skim(deep);

  deep_skim.value();

  EXPECT_FALSE(deep_skim.finish().has_value());
}

TEST(Compact, KeepsBlanksWithinStrings) {
  EXPECT_EQ(compact("{ \"a b\" :\t\"c \\\" d\" ,\n\"e\": [ 1 , 2 ] }"),
            R"({"a b":"c \" d","e":[1,2]})");
}

}  // namespace
}  // namespace hangar::kube::internal
