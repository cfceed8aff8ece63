#include "reconcile/conditions.h"

#include "json/yaml.h"
#include "reconcile/limits.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>

namespace hangar::reconcile {
namespace {

const WallTime kNow = parse_rfc3339("2026-04-08T12:00:00Z").value();
const WallTime kLater = kNow + std::chrono::minutes(5);

json::Value yaml(std::string_view text) {
  return json::parse_yaml(text).value();
}

Condition ready(ConditionStatus status, std::string reason, std::string message) {
  return {.status = status,
          .reason = std::move(reason),
          .message = std::move(message),
          .observed_generation = 3};
}

TEST(SetCondition, MakesOneWithEveryRequiredField) {
  json::Value status = nullptr;

  EXPECT_TRUE(set_condition(status, ready(ConditionStatus::False, "InProgress", "going"), kNow));

  EXPECT_EQ(json::dump(status),
            R"({"conditions":[{"type":"Ready","status":"False","observedGeneration":3,)"
            R"("lastTransitionTime":"2026-04-08T12:00:00Z","reason":"InProgress",)"
            R"("message":"going"}]})");
}

TEST(SetCondition, MovesTheTransitionTimeOnlyWithTheStatus) {
  json::Value status = json::Object();
  set_condition(status, ready(ConditionStatus::False, "InProgress", "going"), kNow);

  EXPECT_TRUE(set_condition(status, ready(ConditionStatus::False, "Error", "bad"), kLater));
  const json::Value* condition = find_condition(status, "Ready");
  EXPECT_EQ(json::string_at(*condition, {"lastTransitionTime"}), "2026-04-08T12:00:00Z");
  EXPECT_EQ(json::string_at(*condition, {"message"}), "bad");

  EXPECT_TRUE(set_condition(status, ready(ConditionStatus::True, "Ready", "good"), kLater));
  EXPECT_EQ(json::string_at(*find_condition(status, "Ready"), {"lastTransitionTime"}),
            "2026-04-08T12:05:00Z");
}

TEST(SetCondition, ReportsNoChangeForTheSameAgain) {
  json::Value status = json::Object();
  set_condition(status, ready(ConditionStatus::True, "Ready", "good"), kNow);
  const json::Value before = status;

  EXPECT_FALSE(set_condition(status, ready(ConditionStatus::True, "Ready", "good"), kLater));
  EXPECT_EQ(status, before);
}

TEST(SetCondition, LeavesOtherConditionsAndFieldsAlone) {
  json::Value status = yaml(
      "{msg: hi, conditions: [{type: Custom, status: 'True', reason: R, message: m, "
      "lastTransitionTime: '2020-01-01T00:00:00Z'}]}");

  set_condition(status, ready(ConditionStatus::True, "Ready", "good"), kNow);

  EXPECT_EQ(json::string_at(status, {"msg"}), "hi");
  ASSERT_NE(find_condition(status, "Custom"), nullptr);
  EXPECT_EQ(json::array_at(status, {"conditions"})->size(), 2U);
}

TEST(SetCondition, ReplacesConditionsThatAreNoList) {
  json::Value status = yaml("{conditions: hello}");

  EXPECT_TRUE(set_condition(status, ready(ConditionStatus::True, "Ready", "good"), kNow));
  EXPECT_NE(find_condition(status, "Ready"), nullptr);
}

TEST(SetCondition, MakesMessagesValidUtf8) {
  struct Case {
    std::string_view name;
    std::string_view bytes;
    std::string_view message;
  };
  const Case cases[] = {
      {"text", "gr\xC3\xBC\xC3\x9F", "gr\xC3\xBC\xC3\x9F"},
      {"four bytes", "\xF0\x9F\x9A\x80", "\xF0\x9F\x9A\x80"},
      {"lone continuation", "a\x80z", "a\xEF\xBF\xBDz"},
      {"cut sequence", "a\xE2\x82", "a\xEF\xBF\xBD\xEF\xBF\xBD"},
      {"overlong slash", "\xC0\xAF", "\xEF\xBF\xBD\xEF\xBF\xBD"},
      {"surrogate", "\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
      {"beyond unicode", "\xF4\x90\x80\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    json::Value status = json::Object();
    set_condition(status, ready(ConditionStatus::False, "Error", std::string(c.bytes)), kNow);
    EXPECT_EQ(json::string_at(*find_condition(status, "Ready"), {"message"}), c.message);
  }
}

TEST(SetCondition, CutsMessagesAtTheSchemasLimit) {
  const auto message_of = [](std::string text) {
    json::Value status = json::Object();
    set_condition(status, ready(ConditionStatus::False, "Error", std::move(text)), kNow);
    return std::string(json::string_at(*find_condition(status, "Ready"), {"message"}));
  };
  const std::string full(limits::kConditionMessageBytesMax, 'x');
  EXPECT_EQ(message_of(full), full);

  const std::string cut = message_of(full + "x");
  EXPECT_EQ(cut.size(), limits::kConditionMessageBytesMax);
  EXPECT_TRUE(cut.ends_with("xxx..."));

  std::string wide;
  while (wide.size() <= limits::kConditionMessageBytesMax)
    wide += "\xE2\x82\xAC";
  const std::string cut_wide = message_of(wide);
  EXPECT_LE(cut_wide.size(), limits::kConditionMessageBytesMax);
  EXPECT_TRUE(cut_wide.ends_with("\xE2\x82\xAC..."));
}

TEST(MergeConditions, TakesThemOverByType) {
  json::Value status = yaml(
      "{conditions: [{type: Ready, status: 'True', reason: Ready, message: ok, "
      "lastTransitionTime: '2026-01-01T00:00:00Z'}]}");
  const json::Value from = yaml(
      "{conditions: [{type: Ready, status: 'True', reason: Own, message: fine, "
      "lastTransitionTime: '2026-02-02T00:00:00Z'}, {type: Custom, status: 'False', reason: R, "
      "message: m, lastTransitionTime: '2026-03-03T00:00:00Z'}]}");

  EXPECT_TRUE(merge_conditions(status, from, kNow));

  const json::Value* merged = find_condition(status, "Ready");
  EXPECT_EQ(json::string_at(*merged, {"reason"}), "Own");
  EXPECT_EQ(json::string_at(*merged, {"lastTransitionTime"}), "2026-01-01T00:00:00Z");
  EXPECT_EQ(json::string_at(*find_condition(status, "Custom"), {"lastTransitionTime"}),
            "2026-03-03T00:00:00Z");
  EXPECT_FALSE(merge_conditions(status, from, kLater));
}

TEST(MergeConditions, SaysNoGenerationThatNobodySaid) {
  json::Value status = yaml(
      "{conditions: [{type: Ready, status: 'True', reason: Ready, message: ok, "
      "observedGeneration: 3, lastTransitionTime: '2026-01-01T00:00:00Z'}]}");
  const json::Value from = yaml(
      "{conditions: [{type: Ready, status: 'True', reason: Ready, message: ok, "
      "lastTransitionTime: '2026-01-01T00:00:00Z'}]}");

  EXPECT_TRUE(merge_conditions(status, from, kNow));
  EXPECT_EQ(json::find(*find_condition(status, "Ready"), {"observedGeneration"}), nullptr);
  EXPECT_FALSE(merge_conditions(status, from, kLater));
}

TEST(MergeConditions, FillsInATimeThatIsMissingOrGosZero) {
  for (const std::string_view time : {"null", "''", "'0001-01-01T00:00:00Z'", "'yesterday'"}) {
    SCOPED_TRACE(time);
    json::Value status = json::Object();
    merge_conditions(status,
                     yaml("{conditions: [{type: A, status: 'True', reason: R, message: m, "
                          "lastTransitionTime: " +
                          std::string(time) + "}]}"),
                     kNow);
    EXPECT_EQ(json::string_at(*find_condition(status, "A"), {"lastTransitionTime"}),
              "2026-04-08T12:00:00Z");
  }
}

TEST(MergeConditions, LeavesOutWhatIsNoCondition) {
  json::Value status = json::Object();

  EXPECT_FALSE(merge_conditions(status, yaml("{conditions: [1, null, {status: 'True'}]}"), kNow));
  EXPECT_FALSE(merge_conditions(status, yaml("{conditions: hello}"), kNow));
  EXPECT_FALSE(merge_conditions(status, nullptr, kNow));
  EXPECT_EQ(status, json::Value(json::Object()));
}

TEST(MeetsCondition, WantsTrueAboutThisGeneration) {
  struct Case {
    std::string_view name;
    std::string_view object;
    bool meets;
  };
  const Case cases[] = {
      {"true", "{metadata: {generation: 2}, status: {conditions: [{type: A, status: 'True'}]}}",
       true},
      {"true, of this generation",
       "{metadata: {generation: 2}, status: {conditions: [{type: A, status: 'True', "
       "observedGeneration: 2}]}}",
       true},
      {"true, of an older generation",
       "{metadata: {generation: 2}, status: {conditions: [{type: A, status: 'True', "
       "observedGeneration: 1}]}}",
       false},
      {"false", "{status: {conditions: [{type: A, status: 'False'}]}}", false},
      {"unknown", "{status: {conditions: [{type: A, status: Unknown}]}}", false},
      {"another type", "{status: {conditions: [{type: B, status: 'True'}]}}", false},
      {"no conditions", "{status: {}}", false},
      {"no status", "{}", false},
      {"status is text", "{status: hello}", false},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(meets_condition(yaml(c.object), "A"), c.meets);
  }
}

}  // namespace
}  // namespace hangar::reconcile
