#include "airways/conversion.h"

#include "admission/conversion_review.h"
#include "airways/airway.h"
#include "base/result.h"
#include "json/value.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::airways {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

json::Value parsed(std::string_view text) {
  return json::parse(text).value();
}

admission::ConversionReview asked() {
  return admission::parse_conversion_review(
             R"({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": {
               "uid": "u", "desiredAPIVersion": "g/v2", "objects": [
                 {"metadata": {"name": "a"}, "spec": {"x": 1}, "status": {"conditions": [1]}},
                 {"metadata": {"name": "b"}, "spec": {"x": 2}}]}})")
      .value();
}

Result<std::string> converted(const admission::ConversionReview& review, std::string_view printed) {
  const std::vector<std::string> texts = {std::string(printed)};
  return airways::converted(review, texts);
}

// Of two objects and one.
admission::ConversionReview asked_in_parts() {
  return {.uid = "u",
          .desired_api_version = "g/v2",
          .statuses = {"", R"({"ready": 1})", R"({"ready": 2})"},
          .parts = {{.body = "", .object_count = 2}, {.body = "", .object_count = 1}}};
}

std::string printed_success(std::string_view objects) {
  return fmt::format(
      R"({{"response": {{"uid": "u", "result": {{"status": "Success"}}, "convertedObjects": {}}}}})",
      objects);
}

TEST(Converted, JoinsTheAnswersToTheParts) {
  const std::vector<std::string> printed = {
      printed_success(R"([{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}])"),
      printed_success(R"([{"status": {"ready": 7}}])")};

  const Result<std::string> answer = airways::converted(asked_in_parts(), printed);

  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(parsed(*answer), parsed(R"({
      "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": {
        "uid": "u", "result": {"status": "Success"}, "convertedObjects": [
          {"metadata": {"name": "a"}}, {"metadata": {"name": "b"}, "status": {"ready": 1}},
          {"metadata": {}, "status": {"ready": 2}}]}})"));
}

TEST(Converted, NeverMovesAnObjectOfOnePartToThePlaceOfAnother) {
  for (const auto& [first, second] : std::vector<std::pair<std::string, std::string>>{
           {"[{}]", "[{}, {}]"}, {"[{}, {}, {}]", "[]"}, {"[{}, {}]", "[]"}, {"null", "[{}]"}}) {
    SCOPED_TRACE(first + second);
    const std::vector<std::string> printed = {printed_success(first), printed_success(second)};

    const Result<std::string> answer = airways::converted(asked_in_parts(), printed);

    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().kind(), ErrorKind::GuestFault);
    EXPECT_THAT(answer.error().message(), HasSubstr("the converter printed"));
  }
}

TEST(Converted, IsTheFailureOfAnyPart) {
  const std::string good = printed_success("[{}, {}]");
  for (const std::string_view response :
       {R"({"uid": "another", "result": {"status": "Success"}, "convertedObjects": [{}]})",
        R"({"uid": "u", "result": {"status": "Failure", "message": "no"}})", R"({"uid": "u"})"}) {
    SCOPED_TRACE(response);
    const std::vector<std::string> printed = {good, fmt::format(R"({{"response": {}}})", response)};

    const Result<std::string> answer = airways::converted(asked_in_parts(), printed);

    ASSERT_TRUE(answer) << answer.error().message();
    EXPECT_EQ(*json::find(parsed(*answer), {"response"}), parsed(response));
  }
}

TEST(Converted, KeepsTheStatusWhateverTheConverterMadeOfIt) {
  const Result<std::string> answer = converted(asked(), R"({"response": {
      "uid": "u", "result": {"status": "Success"}, "convertedObjects": [
        {"metadata": {"name": "a"}, "spec": {"y": 1}, "status": {}},
        {"metadata": {"name": "b"}, "spec": {"y": 2}}]}})");

  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(parsed(*answer), parsed(R"({
      "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": {
        "uid": "u", "result": {"status": "Success"}, "convertedObjects": [
          {"metadata": {"name": "a"}, "spec": {"y": 1}, "status": {"conditions": [1]}},
          {"metadata": {"name": "b"}, "spec": {"y": 2}}]}})"));
}

TEST(Converted, HasTheMemberMetadataWhateverTheConverterLeavesOut) {
  const Result<std::string> answer = converted(asked(), R"({"response": {
      "uid": "u", "convertedObjects": [{"spec": {"y": 1}}, {"metadata": null}]}})");

  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(*json::find(parsed(*answer), {"response", "convertedObjects"}), parsed(R"([
      {"metadata": {}, "spec": {"y": 1}, "status": {"conditions": [1]}},
      {"metadata": {}}])"));
}

TEST(Converted, KeepsTheTextOfAllElse) {
  const Result<std::string> answer = converted(asked(), R"({"response": {
      "new": 1.50, "convertedObjects": [
        {"status": 1, "a": 1e2, "metadata": {}, "status": 2}, "text", {"b": "\u00e9"}], "uid": "u"}}
)");

  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_THAT(*answer, EndsWith(R"("response":{
      "new": 1.50, "convertedObjects": [{"a": 1e2,"metadata": {},"status":{"conditions": [1]}},"text",{"b": "\u00e9"}], "uid": "u"}})"));
}

TEST(Converted, PassesOnWhatTheServerHasToJudge) {
  for (const std::string_view response :
       {R"({"uid": "another", "convertedObjects": []})",
        R"({"uid": "u", "convertedObjects": [1, 2, 3], "result": {"status": "Success"}})",
        R"({"uid": "u", "result": {"status": "Failure", "message": "no"}})",
        R"({"uid": "u", "convertedObjects": "none"})"}) {
    SCOPED_TRACE(response);
    const Result<std::string> answer =
        converted(asked(), std::string(R"({"response": )") + std::string(response) + "}");
    ASSERT_TRUE(answer) << answer.error().message();
    EXPECT_EQ(*json::find(parsed(*answer), {"response"}), parsed(response));
  }
}

TEST(Converted, IsAFaultOfTheConverterWhenItPrintsSomethingElse) {
  for (const std::string_view printed :
       {"", "text", "{}", "[]", R"({"response": 1})", R"({"response": {}} more)",
        R"({"response": {"uid": 1e999}})", R"({"response": {}, "response": {}})"}) {
    SCOPED_TRACE(printed);
    const Result<std::string> answer = converted(asked(), printed);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().kind(), ErrorKind::GuestFault);
    EXPECT_THAT(answer.error().message(), HasSubstr("the converter printed"));
  }
}

TEST(HasConversion, NeedsAConverterAndSomethingToConvert) {
  Airway airway;
  airway.template_ = parsed(R"({"versions": [{"name": "v1"}, {"name": "v2"}]})");
  EXPECT_FALSE(has_conversion(airway));
  airway.converter_url = "oci://registry/converter:v1";
  EXPECT_TRUE(has_conversion(airway));
  airway.template_ = parsed(R"({"versions": [{"name": "v2"}]})");
  EXPECT_FALSE(has_conversion(airway));
}

}  // namespace
}  // namespace hangar::airways
