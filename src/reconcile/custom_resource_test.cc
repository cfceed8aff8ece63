#include "reconcile/custom_resource.h"

#include "json/value.h"

#include <gtest/gtest.h>

#include <string_view>

namespace hangar::reconcile {
namespace {

json::Value parse(std::string_view text) {
  return json::parse(text).value();
}

TEST(StatusReplacement, HoldsOnlyForTheVersionThatWasLookedAt) {
  const json::Value patch = status_replacement(parse(R"({"metadata": {"resourceVersion": "7"}})"),
                                               parse(R"({"phase": "a"})"));

  EXPECT_EQ(patch, parse(R"([{"op": "replace", "path": "/metadata/resourceVersion", "value": "7"},
                             {"op": "add", "path": "/status", "value": {"phase": "a"}}])"));
}

TEST(StatusOf, ASpecIsTheSameWhateverItsVersionAndNeverThatOfAnotherObject) {
  const json::Value object =
      parse(R"({"metadata": {"uid": "u", "generation": 2, "resourceVersion": "7"}})");

  EXPECT_TRUE(is_same_spec(
      object, parse(R"({"metadata": {"uid": "u", "generation": 2, "resourceVersion": "8"}})")));
  EXPECT_FALSE(is_same_spec(object, parse(R"({"metadata": {"uid": "u", "generation": 3}})")));
  EXPECT_FALSE(is_same_spec(object, parse(R"({"metadata": {"uid": "v", "generation": 2}})")));
}

TEST(StatusOf, IsEmptyWhereThereIsNone) {
  EXPECT_EQ(status_of(parse("{}")), json::Value(json::Object{}));
  EXPECT_EQ(status_of(parse(R"({"status": null})")), json::Value(json::Object{}));
  EXPECT_EQ(status_of(parse(R"({"status": {"a": 1}})")), parse(R"({"a": 1})"));
}

}  // namespace
}  // namespace hangar::reconcile
