#include "airways/proposed.h"

#include "admission/review.h"
#include "airways/resource_ref.h"
#include "json/value.h"

#include <gtest/gtest.h>

#include <string_view>

namespace hangar::airways {
namespace {

bool passes(std::string_view before, std::string_view after) {
  admission::Review review;
  review.operation = admission::Operation::Update;
  review.old_object = json::parse(before).value();
  review.object = json::parse(after).value();
  return passes_unseen(review);
}

TEST(Update, PassesUnseenWhereOnlyBookkeepingChanges) {
  constexpr std::string_view kBefore =
      R"({"spec": {"a": [1, 2]}, "metadata": {"name": "x", "labels": {"l": "v"}, "generation": 1}})";

  EXPECT_TRUE(passes(kBefore, kBefore));
  EXPECT_TRUE(passes(kBefore, R"({"spec": {"a": [1, 2]}, "status": {"b": 1},
      "metadata": {"labels": {"l": "v"}, "name": "x", "finalizers": ["f"], "ownerReferences": [],
                   "resourceVersion": "7", "managedFields": [1]}})"));
  for (const std::string_view after : {
           R"({"spec": {"a": [1, 3]}, "metadata": {"name": "x", "labels": {"l": "v"}}})",
           R"({"metadata": {"name": "x", "labels": {"l": "v"}}})",
           R"({"spec": {"a": [1, 2]}, "more": 1, "metadata": {"name": "x", "labels": {"l": "v"}}})",
           R"({"spec": {"a": [1, 2]}, "metadata": {"name": "x"}})",
           R"({"spec": {"a": [1, 2]}, "metadata": {"name": "x", "labels": {"l": "w"}}})",
           R"({"spec": {"a": [1, 2]}, "metadata": {"name": "x", "labels": {}, "annotations": {}}})",
           R"({"spec": {"a": [1, 2]}})",
       })
    EXPECT_FALSE(passes(kBefore, after)) << after;
}

TEST(Update, DoesNotPassUnseenWhereMembersAreLeftOut) {
  admission::Review review;
  review.operation = admission::Operation::Update;
  review.object = review.old_object = json::parse(R"({"metadata": {"name": "x"}})").value();
  ASSERT_TRUE(passes_unseen(review));

  review.is_old_object_cut = true;

  EXPECT_FALSE(passes_unseen(review));
}

TEST(LookupsOfReviews, AreHeldForEachRunAndByTheNamespaceThatPays) {
  const ResourceRef instance{
      .kind = {.group = "example.com", .kind = "Web"}, .namespace_ = "victim", .name = "one"};
  admission::Review review{.uid = "chosen by the sender"};
  review.key = {.namespace_ = "victim", .name = "one"};
  const int first = 1;
  const int second = 2;

  EXPECT_NE(holder_of_lookups(review, instance, &first),
            holder_of_lookups(review, instance, &second));
  EXPECT_NE(holder_of_lookups(review, instance, &first).namespace_, "victim");
  review.is_authenticated = true;
  EXPECT_EQ(holder_of_lookups(review, instance, &first).namespace_, "victim");
  EXPECT_NE(holder_of_lookups(review, instance, &first).name, "one");
}

}  // namespace
}  // namespace hangar::airways
