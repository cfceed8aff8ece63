#include "admission/conversion_review.h"

#include "base/result.h"
#include "json/value.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace hangar::admission {
namespace {

using ::testing::HasSubstr;

Result<ConversionReview> with_request(std::string_view request) {
  return parse_conversion_review(
      fmt::format(R"({{"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
                      "request": {}}})",
                  request));
}

TEST(ConversionReview, IsReadWithTheStatusOfEachObject) {
  const Result<ConversionReview> review = with_request(
      R"({"uid": "u", "desiredAPIVersion": "g/v2", "objects": [
           {"a": 1, "status": {"ready": true}}, {"b": 2}, 3]})");

  ASSERT_TRUE(review) << review.error().message();
  EXPECT_EQ(review->uid, "u");
  EXPECT_EQ(review->desired_api_version, "g/v2");
  EXPECT_EQ(review->statuses, (std::vector<std::string>{R"({"ready":true})", "", ""}));
}

TEST(ConversionReview, SaysWhatIsWrongWithIt) {
  EXPECT_FALSE(parse_conversion_review("{"));
  EXPECT_THAT(parse_conversion_review(R"({"apiVersion": "v1", "kind": "Pod"})").error().message(),
              HasSubstr("not v1 Pod"));
  EXPECT_THAT(with_request("null").error().message(), HasSubstr("request.uid"));
  EXPECT_THAT(with_request(R"({"uid": "u", "objects": []})").error().message(),
              HasSubstr("request.desiredAPIVersion"));
  EXPECT_THAT(
      with_request(R"({"uid": "u", "desiredAPIVersion": "v", "objects": 1})").error().message(),
      HasSubstr("request.objects"));
}

TEST(ConversionReview, AFailureIsAnAnswerOfItsOwn) {
  EXPECT_EQ(json::parse(conversion_failure("u", "why")).value(),
            json::parse(R"({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
                            "response": {"uid": "u", "convertedObjects": [],
                                         "result": {"status": "Failure", "message": "why"}}})")
                .value());
}

}  // namespace
}  // namespace hangar::admission
