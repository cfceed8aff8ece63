#include "admission/review.h"

#include "base/result.h"
#include "json/limits.h"
#include "json/value.h"
#include "kube/client.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace hangar::admission {
namespace {

using testing::HasSubstr;

constexpr std::string_view kUpdate = R"({
  "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
  "request": {"uid": "u1", "operation": "UPDATE", "namespace": "ns", "name": "one", "dryRun": true,
    "kind": {"group": "g", "version": "v1", "kind": "K"},
    "userInfo": {"username": "alice", "groups": ["a", "b"],
      "extra": {"example.com/scope": ["read", "list"]}},
    "object": {"spec": 2}, "oldObject": {"spec": 1}}})";

TEST(Review, HasWhatTheRequestSays) {
  const Result<Review> review = parse_review(kUpdate);

  ASSERT_TRUE(review) << review.error().message();
  EXPECT_EQ(review->uid, "u1");
  EXPECT_EQ(review->operation, Operation::Update);
  EXPECT_EQ(review->kind.kind, "K");
  EXPECT_EQ(review->key.to_string(), "ns/one");
  // An authorizer may decide by each of these.
  const kube::Identity alice{
      .user = "alice", .groups = {"a", "b"}, .extra = {{"example.com/scope", {"read", "list"}}}};
  EXPECT_EQ(review->identity, alice);
  EXPECT_TRUE(review->is_dry_run);
  EXPECT_EQ(json::int_at(review->object, {"spec"}), 2);
  EXPECT_EQ(json::int_at(review->old_object, {"spec"}), 1);
}

TEST(Review, IsRefusedWithWordsWhenItIsMalformed) {
  const auto error_of = [](std::string_view from, std::string_view to) {
    std::string text(kUpdate);
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    const Result<Review> review = parse_review(text);
    EXPECT_FALSE(review) << to;
    return review ? std::string() : review.error().message();
  };

  EXPECT_THAT(error_of("admission.k8s.io/v1", "admission.k8s.io/v1beta1"), HasSubstr("v1beta1"));
  EXPECT_THAT(error_of("\"request\"", "\"other\""), HasSubstr("request: is required"));
  EXPECT_THAT(error_of("\"u1\"", "\"\""), HasSubstr("request.uid"));
  EXPECT_THAT(error_of("UPDATE", "UPSET"), HasSubstr("UPSET"));
  EXPECT_THAT(error_of("\"object\"", "\"objekt\""), HasSubstr("request.object"));
  EXPECT_THAT(error_of("\"oldObject\"", "\"older\""), HasSubstr("request.oldObject"));
  EXPECT_FALSE(parse_review("{"));
  EXPECT_FALSE(parse_review("[]"));
}

// A creation of an object that has these members and is nested `depth` levels deep.
std::string creation_of(std::size_t depth, std::string_view metadata) {
  const std::size_t lists = depth - 1;
  return fmt::format(
      R"({{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": {{"uid": "u1",
      "operation": "CREATE", "object": {{"metadata": {}, "spec": {}1{}}}, "oldObject": null,
      "userInfo": {{"username": "alice"}}}}}})",
      metadata, std::string(lists, '['), std::string(lists, ']'));
}

TEST(Review, IsReadWholeForAnObjectThatIsAsDeepAsADocument) {
  const std::string fields = std::string(200, '[') + std::string(200, ']');
  const std::string body =
      creation_of(limits::kDocumentDepthMax,
                  fmt::format(R"({{"name": "a", "managedFields": {}, "uid": "b"}})", fields));
  ASSERT_FALSE(json::parse(body));

  const Result<Review> review = parse_review(body);

  ASSERT_TRUE(review) << review.error().message();
  EXPECT_EQ(review->uid, "u1");
  EXPECT_EQ(review->identity.user, "alice");
  EXPECT_FALSE(review->is_object_cut);
  EXPECT_TRUE(check_depth(*review));
  EXPECT_EQ(json::dump(*json::find(review->object, {"metadata"})), R"({"name":"a","uid":"b"})");
  EXPECT_NE(json::array_at(review->object, {"spec"}), nullptr);
  EXPECT_TRUE(review->old_object.is_null());
}

TEST(Review, OfAnObjectThatIsDeeperHasTheRestOfIt) {
  const Result<Review> review =
      parse_review(creation_of(limits::kDocumentDepthMax + 2, R"({"name": "a"})"));

  ASSERT_TRUE(review) << review.error().message();
  EXPECT_EQ(review->uid, "u1");
  EXPECT_TRUE(review->is_object_cut);
  EXPECT_FALSE(review->is_old_object_cut);
  EXPECT_EQ(json::dump(review->object), R"({"metadata":{"name":"a"}})");
  const Result<> fits = check_depth(*review);
  ASSERT_FALSE(fits);
  EXPECT_EQ(fits.error().kind(), ErrorKind::InvalidInput);
  EXPECT_EQ(fits.error().message(), "the object is nested more than 128 levels deep");
}

TEST(Review, OfAnObjectOneLevelTooDeepIsCut) {
  const Result<Review> review = parse_review(creation_of(limits::kDocumentDepthMax + 1, "{}"));

  ASSERT_TRUE(review) << review.error().message();
  EXPECT_TRUE(review->is_object_cut);
  EXPECT_FALSE(check_depth(*review));
}

TEST(Review, OfADeepObjectThatIsBeingDeletedIsNotRefused) {
  const Result<Review> review = parse_review(creation_of(
      limits::kDocumentDepthMax + 2, R"({"deletionTimestamp": "2026-01-01T00:00:00Z"})"));

  ASSERT_TRUE(review) << review.error().message();
  EXPECT_TRUE(check_depth(*review));
}

TEST(Review, IsMalformedWhereAnythingElseIsDeepOrWrong) {
  const std::string deep = creation_of(limits::kDocumentDepthMax + 2, "{}");
  std::string deep_elsewhere = deep;
  deep_elsewhere.replace(deep_elsewhere.find("\"object\""), 8, "\"options\"");

  const Result<Review> elsewhere = parse_review(deep_elsewhere);
  const Result<Review> cut_off = parse_review(deep.substr(0, deep.size() - 1));

  ASSERT_FALSE(elsewhere);
  EXPECT_THAT(elsewhere.error().message(), HasSubstr("nested more than 128 levels deep"));
  EXPECT_FALSE(cut_off);
  EXPECT_FALSE(parse_review(std::string(300, '[') + std::string(300, ']')));
}

TEST(Review, AnswerNamesTheReviewAndCutsLongTexts) {
  Decision decision = refusal(Error(ErrorKind::InvalidInput, std::string(10000, 'x')));
  decision.warnings.assign(100, std::string(1000, 'w'));

  const json::Value answer = json::parse(answer_to("u1", decision)).value();

  EXPECT_EQ(json::string_at(answer, {"response", "uid"}), "u1");
  EXPECT_FALSE(json::bool_at(answer, {"response", "allowed"}, true));
  EXPECT_EQ(json::int_at(answer, {"response", "status", "code"}), 422);
  EXPECT_LE(json::string_at(answer, {"response", "status", "message"}).size(), 4096U);
  EXPECT_EQ(json::array_at(answer, {"response", "warnings"})->size(), 16U);
}

TEST(Review, IsCutBetweenCharacters) {
  std::string message = "x";
  while (message.size() < 5000)
    message += "é";

  const std::string answer = answer_to("u", refusal(Error(ErrorKind::Denied, message)));

  EXPECT_TRUE(json::parse(answer));  // It refuses text that is not UTF-8.
}

}  // namespace
}  // namespace hangar::admission
