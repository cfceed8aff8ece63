#include "kube/labels.h"

#include "kube/object.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

namespace hangar::kube {
namespace {

ObjectPtr with_labels(std::string_view labels) {
  auto object = Object::make(fmt::format(
      R"({{"apiVersion":"v1","kind":"X","metadata":{{"labels":{},"name":"x"}},"spec":{{"labels":{{"spec":"1"}}}}}})",
      labels));
  EXPECT_TRUE(object.has_value()) << labels;
  return object.value_or(nullptr);
}

TEST(Labels, AreFoundByKey) {
  const ObjectPtr object = with_labels(R"({"z":"1","a":"","example.com/b":"c"})");
  const Labels labels(*object);

  EXPECT_EQ(labels.find("z"), "1");
  EXPECT_EQ(labels.find("a"), "");
  EXPECT_EQ(labels.find("example.com/b"), "c");
  for (const char* key : {"", "b", "example.com", "spec", "zz"})
    EXPECT_EQ(labels.find(key), std::nullopt) << key;
}

TEST(Labels, AreWhatTheTextStandsFor) {
  const ObjectPtr object = with_labels(R"({ "a\u0062" : "\u0041\"", "n" : 1, "o":{"p":"q"} })");
  const Labels labels(*object);

  EXPECT_EQ(labels.find("ab"), "A\"");
  EXPECT_EQ(labels.find("n"), std::nullopt);
  EXPECT_EQ(labels.find("p"), std::nullopt);

  const ObjectPtr twice = with_labels(R"({"b":"1","a":"1","b":"","a":1})");
  EXPECT_EQ(Labels(*twice).find("b"), "");
  EXPECT_EQ(Labels(*twice).find("a"), std::nullopt);
}

TEST(Labels, AreNoneWhereThereIsNoObjectOfThem) {
  for (const char* text : {"{}", "null", R"("a")", R"(["a"])"}) {
    const ObjectPtr object = with_labels(text);
    EXPECT_EQ(Labels(*object).find("a"), std::nullopt) << text;
  }
  EXPECT_EQ(Labels().find("a"), std::nullopt);
}

TEST(Labels, OfTheNextObjectAreNotThoseOfTheLast) {
  const ObjectPtr first = with_labels(R"({"a":"1"})");
  const ObjectPtr second = with_labels(R"({"b":"2"})");
  Labels labels(*first);
  labels.read(*second);

  EXPECT_EQ(labels.find("a"), std::nullopt);
  EXPECT_EQ(labels.find("b"), "2");
}

}  // namespace
}  // namespace hangar::kube
