#include "admission/conversion_review.h"

#include "base/result.h"
#include "json/value.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
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
  EXPECT_EQ(review->statuses, (std::vector<std::string>{R"({"ready": true})", "", ""}));
  ASSERT_EQ(review->parts.size(), 1);
  EXPECT_EQ(review->parts.front().object_count, 3);
}

TEST(ConversionReview, ShowsTheConverterAllButManagedFields) {
  for (const auto& [object, shown] : std::vector<std::pair<std::string, std::string>>{
           {R"({"metadata": {"managedFields": [{"a": "]"}], "name": "n"}, "x": 1})",
            R"({"metadata": {"name": "n"}, "x": 1})"},
           {R"({"metadata": {"name": "n", "managedFields": [{}], "uid": "u"}})",
            R"({"metadata": {"name": "n", "uid": "u"}})"},
           {R"({"metadata": {"name": "n" , "managedFields" : null } , "x": [1, 2.50]})",
            R"({"metadata": {"name": "n"}, "x": [1, 2.50]})"},
           {R"({"metadata": {"managedFields": []}})", R"({"metadata": {}})"},
           {R"({"metadata": null})", R"({"metadata": null})"},
           {R"({"spec": {"metadata": {"managedFields": [1]}}, "managedFields": 2})",
            R"({"spec": {"metadata": {"managedFields": [1]}}, "managedFields": 2})"}}) {
    SCOPED_TRACE(object);
    const auto request_of = [](std::string_view objects) {
      return fmt::format(R"({{"uid": "u", "objects": [{}], "desiredAPIVersion": "v", "new": [1]}})",
                         objects);
    };

    const Result<ConversionReview> review = with_request(request_of(object + ", {}"));

    ASSERT_TRUE(review) << review.error().message();
    EXPECT_EQ(*json::find(json::parse(review->parts.front().body).value(), {"request"}),
              json::parse(request_of(shown + ", {}")).value());
  }
}

TEST(ConversionReview, RefusesWhatReadersUnderstandDifferently) {
  for (const std::string_view request :
       {R"({"uid": "u", "desiredAPIVersion": "v", "objects": [], "objects": []})",
        R"({"uid": "u", "desiredAPIVersion": "v", "objects": []}, "request": {})",
        R"({"uid": "u", "desiredAPIVersion": "v", "objects": [
             {"metadata": {"managedFields": [], "managedFields": []}}]})"}) {
    EXPECT_THAT(with_request(request).error().message(), HasSubstr("twice")) << request;
  }
}

TEST(ConversionReview, RefusesObjectsWithoutText) {
  std::string objects = "1";
  for (int count = 0; count < 1000; ++count)
    objects += ",1";

  EXPECT_THAT(
      with_request(
          fmt::format(R"({{"uid": "u", "desiredAPIVersion": "v", "objects": [{}]}})", objects))
          .error()
          .message(),
      HasSubstr("more objects"));
}

std::string object_of(std::size_t number, std::size_t bytes) {
  return fmt::format(R"({{"number": {}, "big": 9007199254740993, "float": 1.5, "text": "{}"}})",
                     number, std::string(bytes, 'x'));
}

std::string body_of(std::size_t object_count, std::size_t object_bytes) {
  std::string objects;
  for (std::size_t number = 0; number < object_count; ++number)
    objects += (number > 0 ? "," : "") + object_of(number, object_bytes);
  return fmt::format(
      R"({{"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": {{
          "uid": "u", "desiredAPIVersion": "g/v2", "objects": [{}]}}}})",
      objects);
}

TEST(ConversionReview, IsSplitIntoReviewsOfItsObjectsInOrder) {
  const std::string body = body_of(7, kConversionPartBytesMin);

  const Result<ConversionReview> review = parse_conversion_review(body, 3);

  ASSERT_TRUE(review) << review.error().message();
  EXPECT_EQ(review->statuses.size(), 7);
  ASSERT_EQ(review->parts.size(), 3);
  std::size_t number = 0;
  for (const ConversionReview::Part& part : review->parts) {
    json::Value expected = json::parse(body).value();
    json::Array some;
    for (std::size_t i = 0; i < part.object_count; ++i)
      some.push_back(json::parse(object_of(number++, kConversionPartBytesMin)).value());
    json::set_at(expected, {"request", "objects"}, std::move(some));
    EXPECT_TRUE(json::parse(part.body).value() == expected) << "before object " << number;
  }
  EXPECT_EQ(number, 7);
}

TEST(ConversionReview, IsWholeWhereAPartWouldBeSmallOrEmpty) {
  struct Row {
    const char* name;
    std::size_t object_count;
    std::size_t object_bytes;
    std::size_t parts_max;
    std::size_t part_count;
  };
  for (const Row& row :
       {Row{"one part", 4, kConversionPartBytesMin, 1, 1},
        Row{"one object", 1, 4 * kConversionPartBytesMin, 4, 1}, Row{"no objects", 0, 0, 4, 1},
        Row{"small", 10, 1024, 4, 1}, Row{"just below", 2, kConversionPartBytesMin - 256, 4, 1},
        Row{"at the limit", 2, kConversionPartBytesMin, 4, 2},
        Row{"fewer objects than parts", 3, 4 * kConversionPartBytesMin, 8, 3}}) {
    SCOPED_TRACE(row.name);
    const Result<ConversionReview> review =
        parse_conversion_review(body_of(row.object_count, row.object_bytes), row.parts_max);
    ASSERT_TRUE(review) << review.error().message();
    EXPECT_EQ(review->parts.size(), row.part_count);
  }
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
