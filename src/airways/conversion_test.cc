#include "airways/conversion.h"

#include "admission/conversion_review.h"
#include "airways/airway.h"
#include "base/result.h"
#include "json/value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace hangar::airways {
namespace {

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
  for (const std::string_view printed : {"", "text", "{}", "[]", R"({"response": 1})"}) {
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
