#include "operators/webhook_source.h"

#include "base/result.h"
#include "json/value.h"
#include "kube/object.h"
#include "operators/operator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

namespace hangar::operators {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const kube::ObjectKey kKey{.namespace_ = "team", .name = "memo"};

json::Value here(std::string_view path) {
  return json::Object{{"url", "https://host:9443" + std::string(path)}, {"caBundle", "Q0E="}};
}

Result<Pointing> point(WebhookKind kind, std::string_view object) {
  return point_at(kKey, kind, *json::parse(object), here);
}

std::string refusal(WebhookKind kind, std::string_view object) {
  const Result<Pointing> pointing = point(kind, object);
  EXPECT_FALSE(pointing.has_value());
  return pointing ? "" : pointing.error().message();
}

TEST(PointAt, EachWebhookKeepsItsPathBehindTheOperators) {
  const Result<Pointing> pointing = point(WebhookKind::Validating, R"({
    "metadata": {"name": "x", "resourceVersion": "5"},
    "webhooks": [{"clientConfig": {"service": {"namespace": "system", "name": "w", "path": "/validate-v1"}}},
                 {"clientConfig": {"url": "https://elsewhere:1/other?a=b", "caBundle": "eA=="}},
                 {"clientConfig": {"service": {"namespace": "system", "name": "w"}}}]})");

  ASSERT_TRUE(pointing.has_value()) << pointing.error().message();
  EXPECT_THAT(pointing->paths, ElementsAre("/validate-v1", "/other?a=b", "/"));
  EXPECT_EQ(json::dump(pointing->patch),
            R"([{"op":"replace","path":"/metadata/resourceVersion","value":"5"},)"
            R"({"op":"add","path":"/webhooks/0/clientConfig","value":)"
            R"({"url":"https://host:9443/operators/team/memo/validate-v1","caBundle":"Q0E="}},)"
            R"({"op":"add","path":"/webhooks/1/clientConfig","value":)"
            R"({"url":"https://host:9443/operators/team/memo/other?a=b","caBundle":"Q0E="}},)"
            R"({"op":"add","path":"/webhooks/2/clientConfig","value":)"
            R"({"url":"https://host:9443/operators/team/memo/","caBundle":"Q0E="}}])");
}

TEST(PointAt, AConfigurationThatIsAsItMustBeIsNotWritten) {
  const Result<Pointing> pointing = point(WebhookKind::Mutating, R"({
    "metadata": {"name": "x", "resourceVersion": "5"},
    "webhooks": [{"clientConfig": {"caBundle": "Q0E=", "url": "https://host:9443/operators/team/memo/mutate"}}]})");

  ASSERT_TRUE(pointing.has_value()) << pointing.error().message();
  EXPECT_THAT(pointing->paths, ElementsAre("/mutate"));
  EXPECT_THAT(pointing->patch, IsEmpty());
}

TEST(PointAt, AnotherAuthorityIsReplacedAndThePathIsNotDoubled) {
  const Result<Pointing> pointing = point(WebhookKind::Mutating, R"({
    "metadata": {"name": "x", "resourceVersion": "5"},
    "webhooks": [{"clientConfig": {"caBundle": "eA==", "url": "https://host:9443/operators/team/memo/mutate"}}]})");

  ASSERT_TRUE(pointing.has_value()) << pointing.error().message();
  ASSERT_EQ(pointing->patch.size(), 2U);
  EXPECT_EQ(json::string_at(pointing->patch[1], {"value", "url"}),
            "https://host:9443/operators/team/memo/mutate");
}

TEST(PointAt, AKindHasOneWebhookForItsConversions) {
  const Result<Pointing> pointing = point(WebhookKind::Conversion, R"({
    "metadata": {"name": "x", "resourceVersion": "5"},
    "spec": {"conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
             "clientConfig": {"service": {"namespace": "system", "name": "w", "path": "/convert"}}}}}})");

  ASSERT_TRUE(pointing.has_value()) << pointing.error().message();
  EXPECT_THAT(pointing->paths, ElementsAre("/convert"));
  ASSERT_EQ(pointing->patch.size(), 2U);
  EXPECT_EQ(json::string_at(pointing->patch[1], {"path"}), "/spec/conversion/webhook/clientConfig");
}

TEST(PointAt, WhatOthersLookAfterIsRefused) {
  EXPECT_THAT(refusal(WebhookKind::Validating, R"({"metadata": {"annotations":
                {"cert-manager.io/inject-ca-from": "a/b"}}, "webhooks": [{}]})"),
              HasSubstr("it has the annotation cert-manager.io/inject-ca-from"));
  EXPECT_THAT(refusal(WebhookKind::Validating, R"({"metadata": {"labels":
                {"hangar.dev/kept-by": "hangar"}}, "webhooks": [{}]})"),
              HasSubstr("the host's own"));
  EXPECT_THAT(refusal(WebhookKind::Validating, R"({"metadata": {}, "webhooks": [{"clientConfig":
                {"url": "https://host:9443/operators/team/memory/validate"}}]})"),
              HasSubstr("the path /operators/team/memory/validate is that of another operator"));
}

TEST(PointAt, AnObjectWithoutWebhooksIsRefused) {
  EXPECT_EQ(refusal(WebhookKind::Validating, "{}"), "it has no webhooks");
  EXPECT_EQ(refusal(WebhookKind::Mutating, R"({"webhooks": []})"), "it has no webhooks");
  EXPECT_EQ(refusal(WebhookKind::Conversion, R"({"spec": {"conversion": {"strategy": "None"}}})"),
            "spec.conversion.strategy is not Webhook");
}

TEST(ReviewPath, NamesTheOperatorAndThePathInItsGuest) {
  struct Row {
    std::string_view path;
    std::string_view name;
    std::string_view in_guest;
  };
  for (const Row& row : {Row{"team/memo/validate", "memo", "/validate"},
                         Row{"team/memo/a/b", "memo", "/a/b"}, Row{"team/memo/", "memo", "/"},
                         Row{"team/memo", "memo", "/"}, Row{"team/memo/../x", "memo", "/../x"}}) {
    const std::optional<ReviewTarget> target = parse_review_path(row.path);
    ASSERT_TRUE(target.has_value()) << row.path;
    EXPECT_EQ(target->key, (kube::ObjectKey{.namespace_ = "team", .name = std::string(row.name)}));
    EXPECT_EQ(target->path, row.in_guest);
  }
}

TEST(ReviewPath, OthersNameNone) {
  for (const std::string& path :
       {std::string(), std::string("team"), std::string("/memo/x"), std::string("team//x"),
        std::string("team/memo/a b"), std::string("team/memo/\n"), std::string("team/memo/\xff"),
        "team/memo/" + std::string(2048, 'x')}) {
    EXPECT_FALSE(parse_review_path(path).has_value()) << path;
  }
}

}  // namespace
}  // namespace hangar::operators
