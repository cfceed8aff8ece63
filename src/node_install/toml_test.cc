#include "node_install/toml.h"

#include "node_install/limits.h"
#include "node_install/outcome.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::node_install {
namespace {

TEST(Toml, SaysTheSameOfEveryWayToWriteIt) {
  const auto tables = Toml::parse("[a.\"b.c\"]\nd = 'x'\n[a.e]\n");
  const auto dotted = Toml::parse("a.\"b.c\".d = \"x\" # a comment\n");
  const auto in_line = Toml::parse("a = { \"b.c\" = { d = \"\"\"x\"\"\" } }\n");

  ASSERT_TRUE(tables && dotted && in_line);
  EXPECT_EQ(tables->leaves(), dotted->leaves());
  EXPECT_EQ(tables->leaves(), in_line->leaves());
  EXPECT_EQ(tables->names_below({"a"}), (std::set<std::string>{"b.c", "e"}));
}

TEST(Toml, TellsTypesApart) {
  std::set<std::string> values;
  for (const std::string value : {"1", "1.0", "\"1\"", "true", "\"true\"", "1979-05-27", "[1]"})
    values.insert(Toml::parse("a = " + value).value().leaves().begin()->second);

  // The element of the array is the same integer, at another path.
  EXPECT_EQ(values.size(), 6);
}

TEST(Toml, ReadsWhatIsAskedFor) {
  const auto document =
      Toml::parse("version = 3\nimports = [\"a\", 1, \"b\"]\n[x]\non = true\nname = \"n\"\n");

  ASSERT_TRUE(document);
  EXPECT_EQ(document->integer({"version"}), 3);
  EXPECT_EQ(document->texts({"imports"}), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(document->boolean({"x", "on"}), true);
  EXPECT_EQ(document->text({"x", "name"}), "n");
  EXPECT_FALSE(document->integer({"x", "name"}));
  EXPECT_FALSE(document->text({"absent"}));
}

TEST(Toml, RefusesWhatItsLibraryDoesNotExpect) {
  for (const std::string_view text : {"[.a]\n", "[a]\n.b = 1\n", "[[.]]", "a = \xc3\xa9\n",
                                      "\xd0\x8f = 1\n", "\xff = 1\n", "a = \"\xc3(\"\n"}) {
    const auto refused = Toml::parse(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().reason(), reason::kConfigInvalid);
  }
}

TEST(Toml, IsBounded) {
  EXPECT_FALSE(Toml::parse(std::string(limits::kConfigBytesMax + 1, '#')));
  // A long name in front of many short keys is written out once for each key.
  std::string wide = "[" + std::string(limits::kConfigBytesMax / 2, 'n') + "]\n";
  for (int i = 0; i < 200; ++i)
    wide += "k" + std::to_string(i) + " = 1\n";
  const auto refused = Toml::parse(wide);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason(), reason::kConfigInvalid);
  EXPECT_FALSE(Toml::parse("a = " + std::string(100'000, '[')));
}

}  // namespace
}  // namespace hangar::node_install
