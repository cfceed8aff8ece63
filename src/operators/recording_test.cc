#include "operators/recording.h"

#include "abi/kube_runtime/messages.h"
#include "gateway/gateway.h"
#include "gateway/request_target.h"
#include "kube/object.h"
#include "kube/protobuf_object.h"
#include "operators/mailbox.h"
#include "recorder/limits.h"
#include "recorder/record.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::operators {
namespace {

using abi::kube_runtime::Listener;
using recorder::Waking;

constexpr std::string_view kFront =
    R"({"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"front","namespace":"shop",)"
    R"("resourceVersion":"4711"},"spec":{}})";

Mailbox::Arrival piece(std::uint64_t id, gateway::Piece what) {
  return {.id = id, .what = std::move(what)};
}

recorder::Asked asked(std::string_view method, std::string_view target, std::string body = {}) {
  // Static, because the result has views into them.
  static gateway::RequestTarget understood;
  static gateway::Request request;
  static std::optional<kube::Identification> object;
  understood = gateway::parse_target(method, target).value();
  request = {.method = std::string(method), .target = std::string(target), .body = std::move(body)};
  object = kube::identify_json_or_protobuf(request.body);
  return asked_of(understood, request, object);
}

void expect_front(const Waking& waking, Waking::Cause cause) {
  EXPECT_EQ(waking.cause, cause);
  EXPECT_EQ(waking.object.group, "apps");
  EXPECT_EQ(waking.object.kind, "Deployment");
  EXPECT_EQ(waking.object.namespace_, "shop");
  EXPECT_EQ(waking.object.name, "front");
  EXPECT_EQ(waking.object.version, 4711U);
}

TEST(Woken, KnowsTheObjectsOfAWatch) {
  Woken woken;
  const kube::ObjectPtr front = kube::Object::make(kFront).value();
  woken.add(piece(3, gateway::WatchLine{gateway::WatchLine::Type::Modified, front}),
            Woken::Source::Stream);
  woken.add(piece(3, R"({"type":"DELETED","object":)" + std::string(kFront) + "}\n"),
            Woken::Source::Stream);

  const std::vector<Waking> wakings = woken.wakings();
  ASSERT_EQ(wakings.size(), 2U);
  EXPECT_EQ(wakings[0].id, 3U);
  expect_front(wakings[0], Waking::Cause::Modified);
  expect_front(wakings[1], Waking::Cause::Deleted);
}

TEST(Woken, FindsTheTraceOfAnObjectWhereThereAreTraces) {
  const std::string object =
      R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"shop",)"
      R"("annotations":{"hangar.dev/traceparent":"00-ab-cd-01"}}})";
  const auto found = [&object](Woken::Traces traces) {
    Woken woken(traces);
    woken.add(piece(3, R"({"type":"MODIFIED","object":)" + object + "}\n"), Woken::Source::Stream);
    return std::string(woken.wakings().at(0).traceparent);
  };
  EXPECT_EQ(found(Woken::Traces::On), "00-ab-cd-01");
  EXPECT_EQ(found(Woken::Traces::Off), "");
}

TEST(Woken, FindsNoTraceWhereThereIsNone) {
  Woken woken(Woken::Traces::On);
  woken.add(piece(3, R"({"type":"MODIFIED","object":)" + std::string(kFront) + "}\n"),
            Woken::Source::Stream);
  const std::string cut =
      R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","annotations":)"
      R"({"hangar.dev/traceparent":")" +
      std::string(1000, 'a') + R"("}}})";
  woken.add(piece(3, R"({"type":"MODIFIED","object":)" + cut + "}\n"), Woken::Source::Stream);
  for (const Waking& waking : woken.wakings())
    EXPECT_EQ(waking.traceparent, "");
}

TEST(Woken, TakesOtherLinesForLines) {
  Woken woken;
  for (const char* const line : {"a line of a log\n", R"({"type":"ERROR","object":{}})",
                                 R"({"type":"ADDED","object":{"metadata":)", ""}) {
    woken.add(piece(3, std::string(line)), Woken::Source::Stream);
  }
  for (const Waking& waking : woken.wakings())
    EXPECT_EQ(waking.cause, Waking::Cause::Line);
  EXPECT_EQ(woken.wakings().size(), 4U);
}

TEST(Woken, CountsAPlainAnswerOnce) {
  Woken woken;
  woken.add({.id = 5, .what = Mailbox::Head{.status = 200}}, Woken::Source::Plain);
  woken.add(piece(5, std::string("body")), Woken::Source::Plain);
  woken.add({.id = 5, .what = Mailbox::End{}}, Woken::Source::Plain);

  ASSERT_EQ(woken.wakings().size(), 1U);
  EXPECT_EQ(woken.wakings().front().cause, Waking::Cause::Answer);
  EXPECT_EQ(woken.wakings().front().bytes, 4U);
}

TEST(Woken, TellsTimersAndTheEndsOfStreamsApart) {
  Woken woken;
  woken.add({.id = 6, .what = Mailbox::End{}}, Woken::Source::Timer);
  woken.add({.id = 7, .what = Mailbox::Head{.status = 200}}, Woken::Source::Stream);
  woken.add({.id = 7, .what = Mailbox::End{}}, Woken::Source::Stream);

  const std::vector<Waking> wakings = woken.wakings();
  ASSERT_EQ(wakings.size(), 3U);
  EXPECT_EQ(wakings[0].cause, Waking::Cause::Timer);
  EXPECT_EQ(wakings[1].cause, Waking::Cause::Head);
  EXPECT_EQ(wakings[2].cause, Waking::Cause::End);
}

TEST(Woken, NamesRequestsIntoTheGuest) {
  Woken woken;
  woken.add_request(Listener::Webhooks, 1200);
  woken.add_request(Listener::Metrics, 0);

  const std::vector<Waking> wakings = woken.wakings();
  ASSERT_EQ(wakings.size(), 2U);
  for (const Waking& waking : wakings)
    EXPECT_EQ(waking.cause, Waking::Cause::Event);
  EXPECT_EQ(wakings[0].event, "review");
  EXPECT_EQ(wakings[0].bytes, 1200U);
  EXPECT_EQ(wakings[1].event, "metrics");
}

TEST(Woken, CountsWhatIsTooMuch) {
  Woken woken;
  for (std::size_t i = 0; i < recorder::kWakingsMax + 2; ++i)
    woken.add({.id = i, .what = Mailbox::End{}}, Woken::Source::Timer);
  woken.add_request(Listener::Webhooks, 1);

  EXPECT_EQ(woken.wakings().size(), recorder::kWakingsMax);
  EXPECT_EQ(woken.left_out(), 3U);
}

TEST(AskedOf, IsWhatTheGatewayUnderstood) {
  const recorder::Asked read = asked("GET", "/api/v1/namespaces/shop/configmaps?watch=true");
  EXPECT_EQ(read.verb, recorder::Verb::Watch);
  EXPECT_EQ(read.resource, "configmaps");
  EXPECT_EQ(read.namespace_, "shop");
  EXPECT_EQ(read.path, "");

  const recorder::Asked write =
      asked("PUT", "/apis/apps/v1/namespaces/shop/deployments/front?fieldManager=web&dryRun=All",
            std::string(kFront));
  EXPECT_EQ(write.verb, recorder::Verb::Update);
  EXPECT_EQ(write.group, "apps");
  EXPECT_EQ(write.name, "front");
  EXPECT_EQ(write.field_manager, "web");
  EXPECT_TRUE(write.is_dry_run);
  EXPECT_EQ(write.version, 4711U);
  EXPECT_EQ(write.bytes, kFront.size());

  EXPECT_EQ(asked("GET", "/version?timeout=3s").path, "/version");
}

TEST(AskedOf, HasTheNameThatTheBodyOfACreationHas) {
  const std::string path = "/apis/apps/v1/namespaces/shop/deployments";
  EXPECT_EQ(asked("POST", path, std::string(kFront)).name, "front");
  EXPECT_EQ(
      asked("POST", path,
            R"({"kind":"Deployment","apiVersion":"apps/v1","metadata":{"generateName":"f-"}})")
          .name,
      "");
  EXPECT_EQ(asked("POST", path, "k8s").name, "");
  EXPECT_EQ(asked("POST", path + "/back/scale", std::string(kFront)).name, "back");
  EXPECT_EQ(asked("DELETE", path, std::string(kFront)).name, "") << "of the collection";
  EXPECT_EQ(asked("POST", "/somewhere", std::string(kFront)).name, "");
}

TEST(HasRecordableBody, IsTrueOfWritesOfObjectsThatAreNoSecrets) {
  EXPECT_TRUE(has_recordable_body(asked("POST", "/api/v1/namespaces/shop/configmaps", "{}")));
  EXPECT_TRUE(has_recordable_body(asked("PUT", "/api/v1/namespaces/shop/configmaps/a", "{}")));
  EXPECT_TRUE(has_recordable_body(asked("PATCH", "/apis/x.y/v1/secrets/a", "{}")));
  EXPECT_FALSE(has_recordable_body(asked("PATCH", "/api/v1/namespaces/shop/secrets/a", "{}")));
  EXPECT_FALSE(has_recordable_body(asked("POST", "/api/v1/namespaces/shop/secrets", "{}")));
  EXPECT_FALSE(has_recordable_body(asked("DELETE", "/api/v1/namespaces/shop/pods/a", "{}")));
  EXPECT_FALSE(has_recordable_body(asked("GET", "/api/v1/namespaces/shop/pods/a", "{}")));
  EXPECT_FALSE(has_recordable_body(asked("POST", "/api/v1/namespaces/shop/configmaps")));
  EXPECT_FALSE(has_recordable_body(asked("POST", "/somewhere", "{}")));
}

TEST(SecretsRead, AreThoseOfTheSpecAndOfRequests) {
  const Operator spec{.key = {"shop", "web"},
                      .environment = {{.name = "A", .value = "b"},
                                      {.name = "B",
                                       .source = EnvironmentEntry::Source::Secret,
                                       .object = "login",
                                       .key = "k"}},
                      .files = {{.path = "/a", .is_secret = true, .object = "files"},
                                {.path = "/b", .object = "plain"}}};
  SecretsRead read(spec);
  read.add(asked("GET", "/api/v1/namespaces/bank/secrets/code"));
  read.add(asked("GET", "/api/v1/namespaces/bank/secrets/code"));
  read.add(asked("GET", "/api/v1/namespaces/bank/configmaps/plain"));
  read.add(asked("GET", "/apis/x.y/v1/namespaces/bank/secrets/other"));
  read.add(asked("GET", "/api/v1/namespaces/shop/secrets?watch=true"));
  read.add(asked("GET", "/api/v1/namespaces/shop/secrets/more"));
  EXPECT_EQ(read.names(),
            (recorder::SecretNames{
                {"shop", "login"}, {"shop", "files"}, {"bank", "code"}, {"shop", ""}}));
}

TEST(SecretsRead, StandForAllOfTheNamespaceAfterACreation) {
  SecretsRead read(Operator{});
  read.add(asked("POST", "/api/v1/namespaces/bank/secrets",
                 R"({"kind":"Secret","apiVersion":"v1","metadata":{"name":"a"}})"));
  EXPECT_EQ(read.names(), (recorder::SecretNames{{"bank", ""}}));
}

TEST(SecretsRead, StandForAllWhenThereAreMany) {
  SecretsRead read(Operator{});
  for (std::size_t i = 0; i <= recorder::kBodySecretsMax; ++i)
    read.add(asked("GET", "/api/v1/namespaces/bank/secrets/" + std::to_string(i)));
  EXPECT_EQ(read.names(), (recorder::SecretNames{{"", ""}}));
  read.add(asked("GET", "/api/v1/namespaces/bank/secrets/one"));
  EXPECT_EQ(read.names().size(), 1U);
}

TEST(SecretsRead, StandForAllAfterAReviewOfOne) {
  SecretsRead read(Operator{});
  read.add_review(R"({"request":{"resource":{"group":"","version":"v1","resource":"pods"}}})");
  EXPECT_TRUE(read.names().empty());
  read.add_review(R"({"request":{"resource":{"group":"","version":"v1","resource":"secrets"}}})");
  EXPECT_EQ(read.names(), (recorder::SecretNames{{"", ""}}));
}

TEST(AnsweredObject, IsTheVersionOfAList) {
  const AnsweredObject answered(
      R"({"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"90"},"items":[)");

  EXPECT_TRUE(answered.is_known());
  EXPECT_EQ(answered.object().name, "");
  EXPECT_EQ(answered.object().version, 90U);
}

TEST(AnsweredObject, IsUnknownBehindMoreThanIsRead) {
  const std::string text = R"({"kind":"Thing","apiVersion":"v1","data":")" +
                           std::string(recorder::kAnswerReadBytesMax, 'x') +
                           R"(","metadata":{"name":"front","resourceVersion":"1"}})";

  EXPECT_FALSE(AnsweredObject(text).is_known());
}

TEST(AnsweredObject, IsTheOneThatWasWrittenOrRead) {
  const AnsweredObject answered(kFront);
  EXPECT_EQ(answered.object().kind, "Deployment");
  EXPECT_EQ(answered.object().name, "front");
  EXPECT_EQ(answered.object().version, 4711U);

  for (const char* const other :
       {"", "no JSON", R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"})",
        "k8s\x00"}) {
    EXPECT_FALSE(AnsweredObject(other).is_known()) << other;
    EXPECT_EQ(AnsweredObject(other).object().name, "") << other;
    EXPECT_EQ(AnsweredObject(other).object().version, 0U) << other;
  }
}

// A Deployment shop/front- in Kubernetes' protobuf.
constexpr std::string_view kProtobuf(
    "k8s\0"
    "\x0a\x15\x0a\x07"
    "apps/v1\x12\x0a"
    "Deployment"
    "\x12\x16\x0a\x14\x0a\x06"
    "front-\x1a\x04"
    "shop\x32\x04"
    "4711",
    51);

TEST(AnsweredObject, IsReadFromProtobuf) {
  const AnsweredObject answered(kProtobuf);
  EXPECT_EQ(answered.object().kind, "Deployment");
  EXPECT_EQ(answered.object().namespace_, "shop");
  EXPECT_EQ(answered.object().name, "front-");
  EXPECT_EQ(answered.object().version, 4711U);
}

TEST(AskedOf, KnowsTheNameInAProtobufBody) {
  const recorder::Asked creation =
      asked("POST", "/apis/apps/v1/namespaces/shop/deployments", std::string(kProtobuf));
  EXPECT_EQ(creation.name, "front-");
}

}  // namespace
}  // namespace hangar::operators
