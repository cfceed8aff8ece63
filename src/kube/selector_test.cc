#include "kube/selector.h"

#include "kube/labels.h"
#include "kube/object.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::kube {
namespace {

TEST(LabelSelector, SelectsAsTheApiServerDoes) {
  struct Row {
    const char* selector;
    const char* labels;
    bool is_selected;
  };
  const std::vector<Row> rows = {
      {"", "{}", true},
      {"  ", R"({"a":"b"})", true},
      {"a=b", R"({"a":"b"})", true},
      {"a==b", R"({"a":"b"})", true},
      {" a = b ", R"({"a":"b"})", true},
      {"a=b", R"({"a":"c"})", false},
      {"a=b", "{}", false},
      {"a=", R"({"a":""})", true},
      {"a=", "{}", false},
      {"a!=b", R"({"a":"c"})", true},
      {"a!=b", R"({"a":"b"})", false},
      {"a!=b", "{}", true},
      {"a", R"({"a":""})", true},
      {"a", "{}", false},
      {"!a", "{}", true},
      {"! a", R"({"a":"b"})", false},
      {"a in (b,c)", R"({"a":"c"})", true},
      {"a in (b, c)", R"({"a":"d"})", false},
      {"a in (b)", "{}", false},
      {"a in ()", R"({"a":""})", true},
      {"a in (b,)", R"({"a":""})", true},
      {"a in (,)", R"({"a":"b"})", false},
      {"a in (in,notin)", R"({"a":"in"})", true},
      {"a notin (b,c)", R"({"a":"d"})", true},
      {"a notin (b,c)", R"({"a":"b"})", false},
      {"a notin (b)", "{}", true},
      {"a>1", R"({"a":"2"})", true},
      {"a>2", R"({"a":"2"})", false},
      {"a<2", R"({"a":"x"})", false},
      {"a<2", "{}", false},
      {"a=b,c", R"({"a":"b","c":"d"})", true},
      {"a=b,!c,d notin (e)", R"({"a":"b","d":"e"})", false},
      {"app.kubernetes.io/name=x", R"({"app.kubernetes.io/name":"x"})", true},
  };
  for (const Row& row : rows) {
    const auto selector = LabelSelector::parse(row.selector);
    ASSERT_TRUE(selector.has_value()) << row.selector << ": " << selector.error().message();
    const ObjectPtr object =
        Object::make(fmt::format(R"({{"apiVersion":"v1","kind":"X","metadata":{{"labels":{}}}}})",
                                 row.labels))
            .value();
    EXPECT_EQ(selector->matches(Labels(*object)), row.is_selected)
        << row.selector << " of " << row.labels;
  }
  EXPECT_TRUE(LabelSelector::parse("a!=b")->matches(Labels()));
  EXPECT_FALSE(LabelSelector::parse("a")->matches(Labels()));
}

TEST(LabelSelector, RefusesWhatTheApiServerRefuses) {
  for (const char* text :
       {"a,",     ",a", "a,,b", "a=b c", "=b",   "a in b", "a in (b", "a in (b c)", "a in",
        "in (b)", "!",  "!a=b", "a=b=c", "a=!b", "a>x",    "a>",      "-a",         "a/b/c",
        "A.b/c",  "/a", "a/",   "a=-b",  "a b",  "a=b,!",  "(a)",     "a=\xff"}) {
    EXPECT_FALSE(LabelSelector::parse(text).has_value()) << text;
  }
  EXPECT_FALSE(LabelSelector::parse("a=" + std::string(64, 'x')).has_value());
}

TEST(FieldSelector, EvaluatesNamesAndLeavesTheRest) {
  struct Row {
    const char* selector;
    bool is_selected;  // Of a/b.
    bool is_remote;
  };
  const std::vector<Row> rows = {
      {"", true, false},
      {"metadata.name=b", true, false},
      {"metadata.name==b", true, false},
      {"metadata.name=c", false, false},
      {"metadata.name!=b", false, false},
      {"metadata.namespace=a,metadata.name=b", true, false},
      {"metadata.namespace!=a", false, false},
      {"status.phase=Running", true, true},
      {"z!=1,metadata.name=b,a=2", true, true},
      {R"(a=x\,y\=\\)", true, true},
      {"metadata.name=b,,", true, false},
  };
  for (const Row& row : rows) {
    const auto selector = FieldSelector::parse(row.selector);
    ASSERT_TRUE(selector.has_value()) << row.selector;
    EXPECT_EQ(selector->matches(ObjectKey{"a", "b"}), row.is_selected) << row.selector;
    EXPECT_EQ(selector->has_remote_terms(), row.is_remote) << row.selector;
  }
  EXPECT_EQ(FieldSelector::parse("a=b,metadata.name=x")->required_name(),
            std::optional<std::string>("x"));
  EXPECT_EQ(FieldSelector::parse("metadata.name!=x")->required_name(), std::nullopt);
  for (const char* text :
       {"metadata.name=a,metadata.name=b", "metadata.name=b,metadata.name=a",
        "metadata.name=a,metadata.name==b", "metadata.name==b,metadata.name=a"}) {
    const bool has_double = std::string_view(text).contains("==");
    EXPECT_EQ(FieldSelector::parse(text)->required_name(), has_double ? "b" : "a") << text;
  }
  for (const char* text : {"a", "a!b", R"(a=\x)", R"(a=b\)", "a=b=c"})
    EXPECT_FALSE(FieldSelector::parse(text).has_value()) << text;
}

}  // namespace
}  // namespace hangar::kube
