#include "json/yaml.h"

#include "base/result.h"
#include "json/limits.h"
#include "json/value.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace hangar::json {
namespace {

std::string read(std::string_view text) {
  const auto parsed = parse_yaml(text);
  return parsed ? dump(*parsed) : "error: " + parsed.error().message();
}

std::string read_all(std::string_view text) {
  const auto parsed = parse_yaml_stream(text);
  if (!parsed) return "error: " + parsed.error().message();
  std::string out;
  for (const Value& document : *parsed)
    out += dump(document) + "\n";
  return out;
}

TEST(Yaml, ReadsScalarsAsKubectlDoes) {
  struct Case {
    std::string_view yaml;
    std::string_view json;
  };
  for (const Case& one : {Case{"true", "true"},
                          Case{"False", "false"},
                          Case{"yes", "true"},
                          Case{"Off", "false"},
                          Case{"'yes'", R"("yes")"},
                          Case{"tRue", R"("tRue")"},
                          Case{"12", "12"},
                          Case{"-7", "-7"},
                          Case{"+7", "7"},
                          Case{"0644", "420"},
                          Case{"0o17", "15"},
                          Case{"0x1F", "31"},
                          Case{"0b11", "3"},
                          Case{"089", "89"},
                          Case{"1_000", "1000"},
                          Case{"1.50", "1.5"},
                          Case{"1e3", "1000"},
                          Case{".5", "0.5"},
                          Case{"-.5e1", "-5"},
                          Case{"1.", "1"},
                          Case{"18446744073709551615", "18446744073709551615"},
                          Case{"-9223372036854775808", "-9223372036854775808"},
                          Case{"100000000000000000000000", "1e+23"},
                          Case{"1e999", R"("1e999")"},
                          Case{"1.2.3", R"("1.2.3")"},
                          Case{"10Mi", R"("10Mi")"},
                          Case{"100m", R"("100m")"},
                          Case{"2001-12-14", R"("2001-12-14")"},
                          Case{"12:30:45", R"("12:30:45")"},
                          Case{"-", "[null]"},
                          Case{"\"\\u00fc\\n\"", R"("ü\n")"},
                          Case{"plain text", R"("plain text")"},
                          Case{"!!str 12", R"("12")"},
                          Case{"!!int \"12\"", "12"},
                          Case{"!!float 1", "1"},
                          Case{"! 12", R"("12")"},
                          Case{"!!map {}", "{}"}}) {
    EXPECT_EQ(read(one.yaml), one.json) << one.yaml;
  }
}

TEST(Yaml, ReadsAManifest) {
  EXPECT_EQ(read(R"(
# A comment
apiVersion: v1
kind: ConfigMap
metadata: {name: x, labels: {a: "1"}}   # another
data:
  8080: port
  on: "yes"
  script: |
    one
      two
  folded: >-
    three
    four
empty:
list:
- a
-   - nested
- key: value
  other: ~
)"),
            R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","labels":{"a":"1"}},)"
            R"("data":{"8080":"port","on":"yes","script":"one\n  two\n","folded":"three four"},)"
            R"("empty":null,"list":["a",["nested"],{"key":"value","other":null}]})");
}

TEST(Yaml, ReadsKeysWithoutValues) {
  EXPECT_EQ(read("a:\nb :\n'c:d':\n? e\n&x f:\n"),
            R"({"a":null,"b":null,"c:d":null,"e":null,"f":null})");
  EXPECT_EQ(read("x: {a, b: c}"), R"({"x":{"a":null,"b":"c"}})");
}

TEST(Yaml, ExpandsAliasesAndMerges) {
  EXPECT_EQ(read("a: &x {p: 1, q: 2}\nb: *x\nc:\n  q: 3\n  <<: *x\n"),
            R"({"a":{"p":1,"q":2},"b":{"p":1,"q":2},"c":{"q":3,"p":1}})");
  EXPECT_EQ(read("a: &x {p: 1}\nb: &y {p: 2, r: 3}\nc: {<<: [*x, *y]}"),
            R"({"a":{"p":1},"b":{"p":2,"r":3},"c":{"p":1,"r":3}})");
  EXPECT_EQ(read("'<<': 1"), R"({"<<":1})");
  EXPECT_EQ(read("<<: 1"), "error: line 1, column 5: << merges mappings only");
}

TEST(Yaml, SplitsAStreamAndLeavesEmptyDocumentsOut) {
  EXPECT_EQ(read_all("---\na: 1\n---\n\n---\n# nothing\n--- \nb: 2\n...\n---\nnull\n"),
            "{\"a\":1}\n{\"b\":2}\n");
  EXPECT_EQ(read_all(""), "");
  EXPECT_EQ(read_all("%YAML 1.2\n---\na: 1\n"), "{\"a\":1}\n");
  EXPECT_EQ(read_all("a: 1\r\n---\r\nb: 2\r\n"), "{\"a\":1}\n{\"b\":2}\n");
  EXPECT_EQ(read_all("\xef\xbb\xbf"
                     "a: 1"),
            "{\"a\":1}\n");
}

TEST(Yaml, ReadsStreamsOfJson) {
  EXPECT_EQ(read_all(" {\"a\": 1}\n---\n[2]\n---\n"), "{\"a\":1}\n[2]\n");
  EXPECT_EQ(read_all("[{\"a\":\"\\ud83d\\ude00\\/\"}]"), "[{\"a\":\"\xf0\x9f\x98\x80/\"}]\n");
  EXPECT_EQ(read_all("{\"a\": 1}\n---\nb: 2\n"), "{\"a\":1}\n{\"b\":2}\n");
  EXPECT_EQ(read_all("{a: 1, b: [x, z]}"), "{\"a\":1,\"b\":[\"x\",\"z\"]}\n");
  EXPECT_EQ(read_all("{\"a\": 1} # comment\n"), "{\"a\":1}\n");
}

TEST(Yaml, NeverTakesTheFirstOfSeveralDocumentsForAll) {
  for (const std::string_view text :
       {"{\"a\":1}\n{\"b\":2}\n", "{\"a\":1}{\"b\":2}", "{\"a\":1} {\"b\":2}", "[1]\n[2]",
        "{a: 1}\n{b: 2}\n", "{\"a\":1}\n---\n{\"b\":2}\n{\"c\":3}", "{\"a\":1}\nb: 2\n",
        "{\"a\":1}]", "a: 1\n--- \nb: 2\nnot a pair\n", "'a'\n'b'\n", "- a\nb: c\n",
        "{\"a\":1} ---\n{\"b\":2}"}) {
    EXPECT_FALSE(parse_yaml_stream(text).has_value()) << text;
  }
  EXPECT_EQ(read_all("{\"a\":1}\n{\"b\":2}\n"),
            "error: line 2, column 1: a second document needs a line '---' before it");
}

// yaml-cpp itself would begin documents for ever.
TEST(Yaml, EndsAtATokenThatNoDocumentCanBeginWith) {
  for (const std::string_view text :
       {"--- ,", "--- ,a\n", "---\n,", "a\n--- ,:b", "--- }", "--- ]"}) {
    EXPECT_FALSE(parse_yaml_stream(text)) << text;
  }
}

TEST(Yaml, NamesLineAndColumnOfWhatIsWrong) {
  struct Case {
    std::string_view yaml;
    std::string_view error;
  };
  for (const Case& one :
       {Case{"a: 1\nb: [1, 2\nc: 3", "error: line 3, column 2: "},
        Case{"a: 1\na: 2\n", "error: line 2, column 1: the key \"a\" is given twice"},
        Case{"a:\n  ? [x]\n  : y\n", "error: line 2, column 5: a key that is not a string"},
        Case{"a: 1\nb\n", "error: line 2, column 1: a key without its ':'"},
        Case{"a:\n  b: c\n  d e # f\ng: h", "error: line 3, column 3: "},
        Case{"~: x", "error: line 1, column 1: a key is null"},
        Case{"a: .inf", "error: line 1, column 4: .inf has no form in JSON"},
        Case{"a: -.NaN", "error: line 1, column 4: -.NaN has no form in JSON"},
        Case{"a: !!binary aGk=", "error: line 1, column 4: the tag tag:yaml.org,2002:binary"},
        Case{"a: !custom x", "error: line 1, column 4: the tag !custom is not supported here"},
        Case{"a: !!int x", "error: line 1, column 4: \"x\" is not of type int"},
        Case{"a: *nowhere", "error: line 1, column 4: "},
        Case{"a: &x [*x]", "error: line 1, column 8: an alias inside its own anchor"},
        Case{"a: \"x\x01\"", "error: line 1, column 6: control character 0x01"},
        Case{"a: 1\nb: \x04\nc: 2", "error: line 2, column 4: control character 0x04"},
        Case{"a: 1\nb: \xff", "error: line 2, column 4: bytes that are not UTF-8"},
        Case{"\t- a", "error: line 1, column "},
        Case{"{\"a\": 1, \"b\": tru}\n{", "error: line 2, column 1: "},
        Case{"{\"a\": 1,\n \"b\" 2}", "error: line 2, column 6: "}}) {
    EXPECT_TRUE(read(one.yaml).starts_with(one.error)) << one.yaml << "\n" << read(one.yaml);
  }
}

TEST(Yaml, ParseYamlWantsExactlyOneDocument) {
  EXPECT_EQ(parse_yaml("").error().kind(), ErrorKind::InvalidInput);
  EXPECT_EQ(read("a: 1\n---\nb: 2"), "error: expected one document, not 2: give exactly one");
}

TEST(Yaml, BoundsTheDepth) {
  const auto flow = [](std::size_t depth) {
    return "x: " + std::string(depth, '[') + std::string(depth, ']');
  };

  EXPECT_TRUE(parse_yaml(flow(limits::kDocumentDepthMax - 1)).has_value());
  EXPECT_FALSE(parse_yaml(flow(limits::kDocumentDepthMax)).has_value());
  EXPECT_FALSE(parse_yaml(std::string(1'000'000, '[')).has_value());
  EXPECT_FALSE(parse_yaml("x: " + std::string(100'000, '[')).has_value());
  std::string dashes;
  for (int level = 0; level < 2000; ++level)
    dashes += "- ";
  EXPECT_FALSE(parse_yaml(dashes).has_value());
}

TEST(Yaml, BoundsTheDepthThatAliasesBuild) {
  const std::string half(limits::kDocumentDepthMax / 2 + 1, '[');
  const std::string end(limits::kDocumentDepthMax / 2 + 1, ']');

  EXPECT_FALSE(parse_yaml("a: &a " + half + end + "\nb: " + half + "*a" + end).has_value());
}

TEST(Yaml, StopsAliasBombs) {
  std::string bomb = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n";
  for (int level = 1; level < 30; ++level) {
    bomb += fmt::format("a{0}: &a{0} [*a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}]\n",
                        level, level - 1);
  }

  const auto parsed = parse_yaml(bomb);

  ASSERT_FALSE(parsed.has_value());
  EXPECT_NE(parsed.error().message().find("aliases that stand for more than"), std::string::npos);
}

TEST(Yaml, StopsMergeBombs) {
  std::string bomb = "a: &a {x: " + std::string(100'000, 'x') + "}\nb:\n";
  for (int count = 0; count < 1000; ++count)
    bomb += "- {<<: *a}\n";

  EXPECT_FALSE(parse_yaml(bomb).has_value());
}

TEST(ToYaml, LooksAsPeopleWriteIt) {
  const Value value = parse(R"({"apiVersion":"v1","metadata":{"name":"x","labels":{}},"list":[1,)"
                            R"({"a":"b","c":[true,[2]]},[]],"script":"one\n two\n","none":null})")
                          .value();

  EXPECT_EQ(to_yaml(value),
            "apiVersion: v1\n"
            "metadata:\n"
            "  name: x\n"
            "  labels: {}\n"
            "list:\n"
            "- 1\n"
            "- a: b\n"
            "  c:\n"
            "  - true\n"
            "  - - 2\n"
            "- []\n"
            "script: |\n"
            "  one\n"
            "   two\n"
            "none: null\n");
}

TEST(ToYaml, QuotesWhatWouldBeReadAsSomethingElse) {
  for (const std::string_view text : {"",           "~",     "null",
                                      "true",       "False", "yes",
                                      "no",         "on",    "Off",
                                      "y",          "N",     "1",
                                      "-1",         "+1",    "0x1",
                                      "0o7",        "0644",  "1e3",
                                      "1.5",        ".5",    "1_000",
                                      ".inf",       "-.INF", ".nan",
                                      "2001-12-14", "1:30",  "2001-12-14T10:00:00Z",
                                      "<<",         "=",     "- a",
                                      "-",          "? a",   "a: b",
                                      "a:",         "a #b",  "#a",
                                      "&a",         "*a",    "!a",
                                      "%a",         "@a",    "`a",
                                      "{a",         "[a",    "'a",
                                      "\"a",        "|",     ">",
                                      " a",         "a ",    "---",
                                      "--- a",      "...",   "\xef\xbb\xbf",
                                      "a\tb",       "a\rb",  "a\x7f",
                                      "a\xc2\x85"}) {
    const std::string yaml = to_yaml(Value(text));

    EXPECT_TRUE(yaml.starts_with('"')) << yaml;
    EXPECT_EQ(parse_yaml(yaml).value(), Value(text)) << yaml;
  }
}

TEST(ToYaml, LeavesOrdinaryWordsPlain) {
  for (const std::string_view text :
       {"nginx:1.25", "10Mi", "100m", "a/b", "1.2.3", "http://x/y?z=1&w", "kube-system", "v1",
        "$(NAME)", "a, b", "it's", "system:serviceaccount:a:b", "-flag", "--all"}) {
    EXPECT_EQ(to_yaml(Value(text)), std::string(text) + "\n");
    EXPECT_EQ(parse_yaml(to_yaml(Value(text))).value(), Value(text));
  }
}

TEST(Yaml, ReadsEachEscapeAsTheCharacterThatItStandsFor) {
  const Value value = parse_yaml(R"({"\Na\_\N": "\_\xe9\L\P\x85\u00a0é", b,})").value();

  EXPECT_TRUE(equal(parse(dump(value)).value(), value));
  EXPECT_EQ(string_at(value, {"\u0085a\u00a0\u0085"}),
            "\u00a0\u00e9\u2028\u2029\u0085\u00a0\u00e9");
}

TEST(Yaml, ReadsManyEscapesInOnePass) {
  constexpr std::size_t kCount = 1'000'000;
  std::string text = "\"";
  for (std::size_t index = 0; index < kCount; ++index)
    text += "\\N";
  EXPECT_EQ(parse_yaml(text + "\"").value().get_string().size(), 2 * kCount);
}

TEST(ToYaml, ReadsBackEqual) {
  const std::vector<std::string> strings = {
      "a\nb",   "a\nb\n",          "a\n\n",         "\n",          "\na",
      " a\nb",  "a\n b\n  c\n",    "a \nb",         "a\nb ",       "a\tb\nc",
      "a\r\nb", "a\n\nb\n\n\n",    "#a\n- b\nc: d", "---\n...\n",  "\u00fc\nb\n",
      "\u2028", "\u0085x",         "x\x01y",        "a\n---\nb\n", "a\n\tb\n",
      "%a\nb",  "\xf0\x9f\x98\x80"};
  const std::string long_key(3000, 'k');
  const std::string long_quoted_key(3000, '"');
  Value value = Object();
  Array all;
  for (const std::string& text : strings) {
    set_at(value, {text}, Value(text));
    all.push_back(Value(text));
    all.push_back(Value(Array{Value(text), Array{Value(text)}}));
    EXPECT_EQ(parse_yaml(to_yaml(Value(text))).value(), Value(text)) << to_yaml(Value(text));
  }
  set_at(value, {"all"}, all);
  set_at(value, {long_key}, 1);
  set_at(value, {long_quoted_key}, Object{{"deep", Array{1, 2}}});
  set_at(value, {"numbers"}, Array{0, -1, 1.5, 1e300, 1e-9, 18446744073709551615U, true, nullptr});

  const std::string yaml = to_yaml(value);

  ASSERT_TRUE(parse_yaml(yaml).has_value()) << parse_yaml(yaml).error().message() << "\n" << yaml;
  EXPECT_TRUE(equal(parse_yaml(yaml).value(), value)) << yaml;
}

}  // namespace
}  // namespace hangar::json
