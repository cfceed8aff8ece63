#include "workflows/live_object.h"

#include "workflows/json_path.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace hangar::workflows {
namespace {

const Owner kOwner = {.key = {.namespace_ = "team", .name = "orders"}, .uid = "u1", .run = "r1"};
const Owner kOther = {.key = {.namespace_ = "team", .name = "others"}, .uid = "u2", .run = "r1"};

// As the action of `owner` made it.
json::Value made_by(const Owner& owner, std::int64_t action) {
  json::Value object = json::Object();
  json::set_at(object, {"metadata", "labels", kUidLabel}, json::String(owner.uid));
  json::set_at(object, {"metadata", "annotations", action_annotation(owner)},
               json::String(action_mark(owner, action)));
  return object;
}

json::Value with_status(std::string_view status) {
  return json::Object{{"status", json::parse(status).value()}};
}

Wish matching(std::string_view path) {
  return {.path = JsonPath::parse(path).value()};
}

TEST(LiveObject, IsOwnedByTheWorkflowWhoseUidItHas) {
  EXPECT_TRUE(is_owned(made_by(kOwner, 1), kOwner));
  EXPECT_FALSE(is_owned(made_by(kOther, 1), kOwner));
  EXPECT_FALSE(is_owned(json::Object(), kOwner));
}

TEST(LiveObject, AJobOfAnotherActionIsInTheWayOfOneThatRunsAJob) {
  EXPECT_TRUE(is_earlier_job(made_by(kOwner, 1), ActionKind::RunJob, kOwner, 2));
  EXPECT_FALSE(is_earlier_job(made_by(kOwner, 2), ActionKind::RunJob, kOwner, 2)) << "its own";
  EXPECT_FALSE(is_earlier_job(made_by(kOwner, 1), ActionKind::Apply, kOwner, 2))
      << "it is changed in place";
  // No action deletes a Job of another owner.
  EXPECT_FALSE(is_earlier_job(made_by(kOther, 1), ActionKind::RunJob, kOwner, 2));
}

TEST(LiveObject, BelongsToTheActionThatMarkedIt) {
  constexpr std::array<std::int64_t, 2> kActions = {1, 3};

  EXPECT_TRUE(belongs_to_any(made_by(kOwner, 3), kOwner, kActions));
  EXPECT_FALSE(belongs_to_any(made_by(kOwner, 2), kOwner, kActions));
  EXPECT_FALSE(belongs_to_any(made_by(kOther, 3), kOwner, kActions));
  EXPECT_FALSE(belongs_to_any(json::Object(), kOwner, kActions));
  EXPECT_FALSE(belongs_to_any(made_by(kOwner, 3), kOwner, {}));
}

// The ids start again with each run.
TEST(LiveObject, OfAnEarlierRunBelongsToNoActionOfThisOne) {
  Owner earlier = kOwner;
  earlier.run = "r0";
  constexpr std::array<std::int64_t, 1> kActions = {3};

  EXPECT_FALSE(belongs_to_any(made_by(earlier, 3), kOwner, kActions));
}

TEST(Unmet, ACompleteWishHasNothingLeft) {
  EXPECT_EQ(unmet({}, json::Object()), "") << "it exists";
  const json::Value live =
      with_status(R"({"phase":"Bound","conditions":[{"type":"Ready","status":"True"}]})");
  Wish wish = matching(".status.phase");
  wish.condition = "Ready";
  wish.value = "Bound";

  EXPECT_EQ(unmet(wish, live), "");
}

TEST(Unmet, NamesTheConditionThatIsMissingOrNotTrue) {
  const Wish wish = {.condition = "Ready"};

  for (const std::string_view status :
       {"{}", R"({"conditions":[{"type":"Other","status":"True"}]})",
        R"({"conditions":[{"type":"Ready","status":"False"}]})",
        R"({"conditions":[{"type":"Ready","status":"Unknown"}]})"}) {
    EXPECT_EQ(unmet(wish, with_status(status)), "the condition Ready is not True") << status;
  }
  EXPECT_EQ(unmet(wish, json::Object()), "the condition Ready is not True");
}

TEST(Unmet, AConditionMayBeWantedInAnotherStatus) {
  const Wish wish = {.condition = "Ready", .condition_status = "False"};

  EXPECT_EQ(unmet(wish, with_status(R"({"conditions":[{"type":"Ready","status":"False"}]})")), "");
  EXPECT_EQ(unmet(wish, with_status(R"({"conditions":[{"type":"Ready","status":"True"}]})")),
            "the condition Ready is not False");
  // A condition that is not set is not False.
  EXPECT_EQ(unmet(wish, json::Object()), "the condition Ready is not False");
}

TEST(Unmet, APathHasToMatchTheValueIfThereIsOne) {
  Wish wish = matching(".status.phase");
  EXPECT_EQ(unmet(wish, with_status("{}")), "jsonPath matches nothing");
  EXPECT_EQ(unmet(wish, with_status(R"({"phase":"Pending"})")), "");

  wish.value = "Bound";
  EXPECT_EQ(unmet(wish, with_status(R"({"phase":"Pending"})")), "jsonPath matches Pending");
  EXPECT_EQ(unmet(wish, with_status(R"({"phase":"Bound"})")), "");
}

// The text ends in Events, which more people may read than Secrets.
TEST(Unmet, NeverRepeatsWhatASecretHas) {
  const json::Value secret = json::Object{
      {"apiVersion", "v1"}, {"kind", "Secret"}, {"data", json::Object{{"token", "aHVudGVyMg=="}}}};
  Wish wish = matching(".data.token");
  wish.value = "b3RoZXI=";

  EXPECT_EQ(unmet(wish, secret), "jsonPath matches another value");
}

TEST(Unmet, RepeatsTheBeginningOfAMatchOnly) {
  Wish wish = matching(".status.text");
  wish.value = "other";
  const std::string long_text(10'000, 'x');

  EXPECT_EQ(unmet(wish, with_status(R"({"text":")" + long_text + "\"}")),
            "jsonPath matches " + std::string(256, 'x'));
}

TEST(Unmet, OneMatchOfSeveralIsEnough) {
  Wish wish = matching(".status.conditions[*].type");
  wish.value = "B";

  EXPECT_EQ(unmet(wish, with_status(R"({"conditions":[{"type":"A"},{"type":"B"}]})")), "");
  EXPECT_EQ(unmet(wish, with_status(R"({"conditions":[{"type":"A"},{"type":"C"}]})")),
            "jsonPath matches A");
}

TEST(Unmet, AConditionDoesNotReplaceThePath) {
  Wish wish = matching(".status.phase");
  wish.condition = "Ready";

  EXPECT_EQ(unmet(wish, with_status(R"({"conditions":[{"type":"Ready","status":"True"}]})")),
            "jsonPath matches nothing");
}

}  // namespace
}  // namespace hangar::workflows
