#include "airways/output.h"

#include "airways/limits.h"
#include "json/value.h"
#include "wasm/limits.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace hangar::airways {
namespace {

using testing::HasSubstr;

// A complete resource in YAML's flow style.
std::string flow(std::string_view kind, std::string_view name, std::string_view version = "v1") {
  return fmt::format("{{apiVersion: {}, kind: {}, metadata: {{name: {}}}}}", version, kind, name);
}

// Kinds and names by stage: "[A:a B:b][C:c]".
std::string shape(const Stages& stages) {
  std::string text;
  for (const Stage& stage : stages) {
    text += '[';
    for (const json::Value& resource : stage) {
      if (text.back() != '[') text += ' ';
      text += ref_of(resource).kind.kind + ":" + ref_of(resource).name;
    }
    text += ']';
  }
  return text;
}

std::string error_of(std::string_view text) {
  const Result<Output> output = parse_output(text);
  return output ? "no error: " + shape(output->stages) : output.error().message();
}

TEST(FlightOutput, IsAcceptedInEveryFormOfYoke) {
  struct Case {
    std::string_view name;
    std::string text;
    std::string_view shape;
  };
  const std::string a = flow("A", "a");
  const std::string b = flow("B", "b");
  const std::string json_a = R"({"apiVersion":"v1","kind":"A","metadata":{"name":"a"}})";
  const std::string json_b = R"({"apiVersion":"v1","kind":"B","metadata":{"name":"b"}})";
  const Case cases[] = {
      {"one YAML object", "apiVersion: v1\nkind: A\nmetadata:\n  name: a\n", "[A:a]"},
      {"one JSON object", json_a, "[A:a]"},
      {"one JSON object and a newline, as Go prints it", json_a + "\n", "[A:a]"},
      {"YAML documents", a + "\n---\n" + b, "[A:a B:b]"},
      {"JSON documents", json_a + "\n---\n" + json_b + "\n", "[A:a B:b]"},
      {"YAML documents that begin with a separator", "---\n" + a + "\n---\n" + b, "[A:a B:b]"},
      {"empty documents between, as Helm prints them",
       "---\n# Source: a.yaml\n---\n" + a + "\n---\n---\n# nothing\n---\n" + b + "\n---\n",
       "[A:a B:b]"},
      {"a list", "[" + a + ", " + b + "]", "[A:a B:b]"},
      {"a JSON list", "[" + json_a + "," + json_b + "]", "[A:a B:b]"},
      {"a block list", "- " + a + "\n- " + b + "\n", "[A:a B:b]"},
      {"stages", "[[" + a + "], [" + b + "]]", "[A:a][B:b]"},
      {"JSON stages", "[[" + json_a + "],[" + json_b + "]]", "[A:a][B:b]"},
      {"a stage that Go never appended to", "[null,[" + json_b + "]]", "[B:b]"},
      {"an empty stage", "[[" + json_a + "],[]]", "[A:a]"},
      {"no resources", "[]", ""},
      {"no resources in one stage", "[[]]", ""},
      {"a list that Go never appended to", "null\n", ""},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const Result<Output> output = parse_output(c.text);
    ASSERT_TRUE(output) << output.error().message();
    EXPECT_EQ(shape(output->stages), c.shape);
  }
}

TEST(FlightOutput, PutsNamespacesAndDefinitionsBeforeTheRestOfTheirStage) {
  const std::string ns = flow("Namespace", "ns");
  const std::string crd = flow("CustomResourceDefinition", "c", "apiextensions.k8s.io/v1");
  const std::string a = flow("A", "a");
  struct Case {
    std::string_view name;
    std::string text;
    std::string_view shape;
  };
  const Case cases[] = {
      {"mixed", "[" + a + "," + ns + "," + crd + "]",
       "[Namespace:ns CustomResourceDefinition:c][A:a]"},
      {"only such", "[" + ns + "," + crd + "]", "[Namespace:ns CustomResourceDefinition:c]"},
      {"in its own stage only", "[[" + a + "],[" + flow("B", "b") + "," + ns + "]]",
       "[A:a][Namespace:ns][B:b]"},
      {"other groups' kinds of these names are ordinary",
       "[" + a + "," + flow("Namespace", "ns", "examples.com/v1") + "]", "[A:a Namespace:ns]"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const Result<Output> output = parse_output(c.text);
    ASSERT_TRUE(output) << output.error().message();
    EXPECT_EQ(shape(output->stages), c.shape);
  }
}

TEST(FlightOutput, IsNeverTruncated) {
  const std::string a = flow("A", "a");
  const std::string b = flow("B", "b");
  struct Case {
    std::string_view name;
    std::string text;
  };
  const Case cases[] = {
      {"a bad document between two good ones", a + "\n---\nkind: [\n---\n" + b},
      {"a document that is not an object", a + "\n---\nhello\n---\n" + b},
      {"a document without kind", a + "\n---\n{apiVersion: v1, metadata: {name: x}}\n---\n" + b},
      {"JSON lines", R"({"apiVersion":"v1","kind":"A","metadata":{"name":"a"}})"
                     "\n"
                     R"({"apiVersion":"v1","kind":"B","metadata":{"name":"b"}})"
                     "\n"},
      {"JSON cut off", R"([{"apiVersion":"v1","kind":"A","metadata":{"name":"a"}},{"apiV)"},
      {"text after JSON", R"({"apiVersion":"v1","kind":"A","metadata":{"name":"a"}} done)"},
      {"lists in several documents", "[" + a + "]\n---\n[" + b + "]"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const Result<Output> output = parse_output(c.text);
    ASSERT_FALSE(output) << shape(output->stages);
    EXPECT_EQ(output.error().kind(), ErrorKind::InvalidInput);
  }
}

TEST(FlightOutput, RefusesWhatIsNoResourceInYokesWords) {
  constexpr std::string_view kGrammar =
      "input must be resource, list of resources, or list of list of resources";
  for (const std::string_view text : {"hello", "{}", "42", "true", "\"text\""}) {
    SCOPED_TRACE(text);
    EXPECT_EQ(error_of(text), kGrammar);
  }
  const std::string a = flow("A", "a");
  for (const std::string& text :
       {"[" + a + ", [" + a + "]]", std::string("[1]"), std::string("[{}]"),
        std::string("[[hello]]"), "[[" + a + "], hello]", "[[[" + a + "]]]"}) {
    SCOPED_TRACE(text);
    EXPECT_THAT(error_of(text), HasSubstr(kGrammar));
  }
}

TEST(FlightOutput, RefusesNothingAtAllInYokesWords) {
  for (const std::string_view text :
       {"", " \n\t\r\n", "---\n", "# only a comment\n", "---\n---\n"}) {
    SCOPED_TRACE(text);
    EXPECT_EQ(error_of(text), "failed to takeoff: resource provided is either empty or invalid");
  }
}

TEST(FlightOutput, SaysWhichResourceLacksWhat) {
  const std::string a = flow("A", "a");
  struct Case {
    std::string_view name;
    std::string text;
    std::string_view message;
  };
  const Case cases[] = {
      {"kind, alone", "{apiVersion: v1, metadata: {name: a}}", "resource: kind is missing"},
      {"kind, in a list", "[" + a + ", {apiVersion: v1}]", "resource 2: kind is missing"},
      {"kind, in a stage", "[[" + a + "], [" + a + ", {apiVersion: v1}]]",
       "stage 2, resource 2: kind is missing"},
      {"kind, in a document", a + "\n---\napiVersion: v1\n", "document 2: kind is missing"},
      {"kind is a number", "[{kind: 1}]", "resource 1: kind is not a string"},
      {"apiVersion", "[{kind: A, metadata: {name: a}}]", "resource 1 (A): apiVersion is missing"},
      {"apiVersion of three parts", "[{kind: A, apiVersion: a/b/c}]",
       "resource 1 (A): apiVersion \"a/b/c\" is not a group/version"},
      {"apiVersion without version", "[{kind: A, apiVersion: a/}]",
       "resource 1 (A): apiVersion \"a/\" is not a group/version"},
      {"metadata", "[{kind: A, apiVersion: v1}]", "resource 1 (A): metadata.name is missing"},
      {"metadata is text", "[{kind: A, apiVersion: v1, metadata: a}]",
       "resource 1 (A): metadata is not an object"},
      {"name is a number", "[{kind: A, apiVersion: v1, metadata: {name: 7}}]",
       "resource 1: metadata.name is not a string"},
      {"name is a path", "[{kind: A, apiVersion: v1, metadata: {name: a/../b}}]",
       "resource 1 (A): metadata.name \"a/../b\" is not a name"},
      {"name is the parent", "[{kind: A, apiVersion: v1, metadata: {name: ..}}]",
       "resource 1 (A): metadata.name \"..\" is not a name"},
      {"namespace is a path", "[{kind: A, apiVersion: v1, metadata: {name: a, namespace: x/y}}]",
       "resource 1 (A \"a\"): metadata.namespace \"x/y\" is not a name"},
      {"null", "[" + a + ", null]", "resource 2 is null"},
      {"only null", "[null]", "resource 1 is null"},
      {"null in a stage", "[[null]]", "stage 1, resource 1 is null"},
      {"kind List", "{apiVersion: v1, kind: List, items: []}",
       "resource: kind List is not expanded; print its items as a list"},
      {"generateName", "[{kind: A, apiVersion: v1, metadata: {generateName: a-}}]",
       "resource 1 (A): metadata.generateName \"a-\" would make another object at every "
       "evaluation; set metadata.name"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(error_of(c.text), c.message);
  }
}

TEST(FlightOutput, MayNameAGenerateNameBesideAName) {
  EXPECT_TRUE(parse_output("[{kind: A, apiVersion: v1, metadata: {name: a-1, generateName: a-}}]"));
}

TEST(FlightOutput, IsBoundedInBytes) {
  std::string text = R"({"apiVersion":"v1","kind":"A","metadata":{"name":"a"}})";
  text.resize(limits::kFlightOutputBytesMax, ' ');
  EXPECT_TRUE(parse_output(text));

  text += ' ';
  const Result<Output> output = parse_output(text);
  ASSERT_FALSE(output);
  EXPECT_EQ(output.error().kind(), ErrorKind::LimitExceeded);
}

TEST(FlightOutput, IsBoundedInResources) {
  const auto list = [](std::size_t count) {
    std::string text = "[";
    for (std::size_t i = 0; i < count; ++i) {
      text += fmt::format(R"({}{{"apiVersion":"v1","kind":"A","metadata":{{"name":"a{}"}}}})",
                          i == 0 ? "" : ",", i);
    }
    return text + "]";
  };
  EXPECT_TRUE(parse_output(list(limits::kFlightResourcesMax)));

  const Result<Output> output = parse_output(list(limits::kFlightResourcesMax + 1));
  ASSERT_FALSE(output);
  EXPECT_EQ(output.error().kind(), ErrorKind::LimitExceeded);
}

TEST(FlightOutput, DoesNotCountSeparatorsWithinBlockText) {
  const Result<Output> output = parse_output(
      "apiVersion: v1\nkind: A\nmetadata: {name: a}\ndata:\n  text: |\n    ---\n    more\n");

  ASSERT_TRUE(output) << output.error().message();
  EXPECT_EQ(shape(output->stages), "[A:a]");
}

TEST(CheckUnique, RefusesTheSameResourceTwiceAlsoInAnotherStageOrVersion) {
  const auto stages_of = [](std::string_view text) { return parse_output(text).value().stages; };
  const std::string a = flow("A", "a", "g/v1");

  EXPECT_TRUE(check_unique(
      stages_of("[" + a + "," + flow("A", "b", "g/v1") + "," + flow("A", "a", "h/v1") + "]")));
  for (const std::string& text :
       {"[" + a + "," + a + "]", "[[" + a + "],[" + flow("A", "a", "g/v2") + "]]"}) {
    SCOPED_TRACE(text);
    const Result<> unique = check_unique(stages_of(text));
    ASSERT_FALSE(unique);
    EXPECT_EQ(unique.error().message(), "/A.g:a is printed twice");
  }
}

}  // namespace
}  // namespace hangar::airways
