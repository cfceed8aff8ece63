#include "json/skim.h"

#include "json/value.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace hangar::json {
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

TEST(Skim, PassesOverWhatIsNestedAsDeepAsTheApiServerTakesIt) {
  constexpr std::size_t kPairs = 5'000;
  std::string text;
  std::string end;
  for (std::size_t pair = 0; pair < kPairs; ++pair) {
    text += R"([1,{"a":{},"b":)";
    end += pair % 3 == 0 ? "}]" : "},[]]";
  }
  text += "true" + end;
  ASSERT_EQ(Skim(text).value(), text);

  // Each bracket has its counterpart, however deep.
  for (const std::size_t at : {text.find("true") + 4, text.find("true") + 200, text.size() - 1}) {
    std::string wrong = text;
    wrong[at] = wrong[at] == '}' ? ']' : '}';
    Skim skim(wrong);
    skim.value();
    EXPECT_FALSE(skim.finish().has_value()) << at;
  }
}

TEST(Skim, RefusesNumbersBeyondADoubleAsTheParserDoes) {
  for (const std::string& text :
       {std::string("1e308"), std::string("1.5e+308"), std::string("1e-999"), std::string("0e999"),
        std::string("1e309"), std::string("-99e307"), std::string("0.1e310"), std::string(309, '1'),
        std::string(400, '1'), std::string(400, '1') + "e-200"}) {
    Skim skim(text);
    skim.value();

    EXPECT_EQ(skim.finish().has_value(), parse(text).has_value()) << text;
  }
}

TEST(Compact, KeepsBlanksWithinStrings) {
  EXPECT_EQ(compact("{ \"a b\" :\t\"c \\\" d\" ,\n\"e\": [ 1 , 2 ] }"),
            R"({"a b":"c \" d","e":[1,2]})");
}

}  // namespace
}  // namespace hangar::json
