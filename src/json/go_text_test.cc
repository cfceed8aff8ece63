#include "json/go_text.h"

#include "json/value.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace hangar::json {
namespace {

Value read(std::string_view text) {
  return parse(text).value();
}
std::string yaml(std::string_view text) {
  return to_yaml_as_go(read(text));
}

TEST(GoJson, HasMembersInOrderAndEscapesWhatHtmlWould) {
  EXPECT_EQ(dump_as_go(read(R"({"b":[1,{"z":null,"a":true}],"a":"<a href=\"x\">&</a>"})")),
            R"({"a":"\u003ca href=\"x\"\u003e\u0026\u003c/a\u003e","b":[1,{"a":true,"z":null}]})");
  EXPECT_EQ(dump_as_go(read("{\"<\":\"\\b\\f\\u0001\\u007f\\u2028\\u2029\\\\u0008\"}")),
            "{\"\\u003c\":\"\\b\\f\\u0001\x7f\\u2028\\u2029\\\\u0008\"}");
}

TEST(GoJson, WritesNumbersAsClientGoReadsThem) {
  EXPECT_EQ(dump_as_go(read("[3.0,1e3,0.1,1e21,9223372036854775807,18446744073709551615]")),
            "[3,1000,0.1,1e+21,9223372036854775807,18446744073709552000]");
}

TEST(GoYaml, IndentsListsAndKeepsContainersOfItemsOnTheirLine) {
  EXPECT_EQ(yaml(R"({"a":{"list":[{"b":1,"a":[1,2]},[3,[4]],{}],"none":[],"empty":{}}})"),
            R"(a:
  empty: {}
  list:
    - a:
        - 1
        - 2
      b: 1
    - - 3
      - - 4
    - {}
  none: []
)");
}

TEST(GoYaml, QuotesWhatWouldBeReadAsSomethingElse) {
  struct Case {
    std::string_view text;
    std::string_view written;
  };
  // The output of yaml.v3 for each of them.
  for (const Case& one : {
           Case{"", R"("")"},
           Case{"plain text", "plain text"},
           Case{"true", R"("true")"},
           Case{"yes", R"("yes")"},
           Case{"y", R"("y")"},
           Case{"null", R"("null")"},
           Case{"~", R"("~")"},
           Case{"8080", R"("8080")"},
           Case{"0x1F", R"("0x1F")"},
           Case{"1_000", R"("1_000")"},
           Case{"1.5", R"("1.5")"},
           Case{"1e3", R"("1e3")"},
           Case{"1.2.3", "1.2.3"},
           Case{"v1", "v1"},
           Case{"0.1.0-rc", "0.1.0-rc"},
           Case{".5", R"(".5")"},
           Case{".inf", R"(".inf")"},
           Case{"1:30", R"("1:30")"},
           Case{"2026-04-08", R"("2026-04-08")"},
           Case{"2026-04-08T12:00:00Z", R"("2026-04-08T12:00:00Z")"},
           Case{"2026-13-08", "2026-13-08"},
           Case{"- a", "'- a'"},
           Case{"-", "'-'"},
           Case{"-a", "-a"},
           Case{"a: b", "'a: b'"},
           Case{"a:b", "a:b"},
           Case{"a #b", "'a #b'"},
           Case{"#a", "'#a'"},
           Case{"@a", "'@a'"},
           Case{"*", "'*'"},
           Case{"it's", "it's"},
           Case{"'", "''''"},
           Case{" a", "' a'"},
           Case{"a ", "'a '"},
           Case{"a\tb", R"("a\tb")"},
           Case{"a\x01", R"("a\x01")"},
           Case{"\x7f", R"("\x7F")"},
           Case{"größer", "größer"},
           Case{"😀", R"("\U0001F600")"},
           Case{"[a]", "'[a]'"},
           Case{"a,b", "a,b"},
           Case{"?", "'?'"},
           Case{"?a", "?a"},
           Case{"---", "'---'"},
           Case{"%a", "'%a'"},
           Case{"<<", "<<"},
       }) {
    EXPECT_EQ(to_yaml_as_go(Value(Object{{"k", one.text}})),
              "k: " + std::string(one.written) + '\n')
        << one.text;
  }
}

TEST(GoYaml, WritesLinesAsABlock) {
  EXPECT_EQ(yaml(R"({"k":"a\n\n  b\n"})"), "k: |\n  a\n\n    b\n");
  EXPECT_EQ(yaml(R"({"k":"a\nb"})"), "k: |-\n  a\n  b\n");
  EXPECT_EQ(yaml(R"({"k":"a\n\n"})"), "k: |+\n  a\n\n");
  EXPECT_EQ(yaml(R"({"k":" a\nb"})"), "k: |2-\n   a\n  b\n");
  EXPECT_EQ(yaml(R"({"k":["a\nb"]})"), "k:\n  - |-\n    a\n    b\n");
  EXPECT_EQ(yaml(R"({"k":"a \nb"})"), "k: \"a \\nb\"\n");
  EXPECT_EQ(yaml(R"({"k":"a\r\nb"})"), "k: \"a\\r\\nb\"\n");
  EXPECT_EQ(yaml(R"({"k":"\ta\nb"})"), "k: |-\n  \ta\n  b\n");
}

TEST(GoYaml, WritesLongNamesOnALineOfTheirOwn) {
  const std::string name(129, 'n');

  EXPECT_EQ(to_yaml_as_go(Value(Object{{name, Object{{"a", 1}, {"b", 2}}}})),
            "? " + name + "\n: a: 1\n  b: 2\n");
  EXPECT_EQ(to_yaml_as_go(Value(Object{{name.substr(1), 1}})), name.substr(1) + ": 1\n");
}

TEST(GoYaml, WritesNumbersWithTheShortestOfTwoForms) {
  EXPECT_EQ(yaml(R"({"k":[1,-2,0.5,100000.5,1234567.5,1e21,1e-5,18446744073709551615]})"),
            "k:\n  - 1\n  - -2\n  - 0.5\n  - 100000.5\n  - 1.2345675e+06\n  - 1e+21\n  - 1e-05\n"
            "  - 1.8446744073709552e+19\n");
}

TEST(GoYaml, OrdersMembersByTheNumbersInTheirNames) {
  EXPECT_EQ(yaml(R"({"a10":1,"a2":1,"b":1,"a":1,"B":1,"a-b":1,"a/b":1,"1":1,"ab":1,"a1b":1})"),
            "\"1\": 1\nB: 1\na: 1\na-b: 1\na/b: 1\na1b: 1\na2: 1\na10: 1\nab: 1\nb: 1\n");
  EXPECT_TRUE(precedes_as_go("default/core", "default/core/v1"));
  EXPECT_FALSE(precedes_as_go("same", "same"));
}

}  // namespace
}  // namespace hangar::json
