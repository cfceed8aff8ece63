// What a guest gets of ConfigMaps and Secrets, and what errors say of them.
#include "operators/guest_inputs.h"

#include "base/limits.h"
#include "base/result.h"
#include "json/value.h"
#include "operators/limits.h"
#include "operators/operator.h"
#include "operators/running_operator.h"
#include "simulation/api_server.h"
#include "simulation/statuses.h"
#include "simulation/test_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::operators {
namespace {

using simulation::ApiAnswer;
using simulation::ApiRequest;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;
using testing::UnorderedElementsAre;
using Source = EnvironmentEntry::Source;

class GuestInputsTest : public simulation::HostTest {
 protected:
  GuestInputsTest() {
    spec_.key = {.namespace_ = "team", .name = "prices"};
    for (const char* const name : {"team", "neighbours"}) {
      EXPECT_EQ(send("POST", "/api/v1/namespaces", "{metadata: {name: " + std::string(name) + "}}")
                    .status,
                201);
    }
  }

  void make(std::string_view plural, std::string_view manifest,
            std::string_view namespace_ = "team") {
    const std::string path =
        "/api/v1/namespaces/" + std::string(namespace_) + "/" + std::string(plural);
    EXPECT_EQ(send("POST", path, manifest).status, 201);
  }
  void want_variable(std::string name, Source source, std::string object, std::string key) {
    spec_.environment.push_back({.name = std::move(name),
                                 .source = source,
                                 .object = std::move(object),
                                 .key = std::move(key)});
  }
  Result<GuestInputs> read() { return await(read_guest_inputs(host_->client, spec_, {})); }
  void expect_error(ErrorKind kind, std::string_view part) {
    const Result<GuestInputs> inputs = read();
    ASSERT_FALSE(inputs.has_value());
    EXPECT_EQ(inputs.error().kind(), kind);
    EXPECT_THAT(inputs.error().message(), HasSubstr(part));
    EXPECT_THAT(inputs.error().message(), Not(HasSubstr("hunter2")));
    EXPECT_THAT(inputs.error().message(), Not(HasSubstr("aHVudGVyMg==")));
  }

  Operator spec_;
};

TEST_F(GuestInputsTest, VariablesAreLiteralsOrOfItsNamespace) {
  make("configmaps", "{metadata: {name: settings}, data: {level: debug}}");
  make("secrets", "{metadata: {name: login}, data: {password: aHVudGVyMg==}}");
  spec_.environment = {{.name = "MODE", .value = "fast"}};
  want_variable("LEVEL", Source::ConfigMap, "settings", "level");
  want_variable("PASSWORD", Source::Secret, "login", "password");

  const Result<GuestInputs> inputs = read();

  ASSERT_TRUE(inputs.has_value()) << inputs.error().message();
  EXPECT_THAT(inputs->environment, ElementsAre("MODE=fast", "LEVEL=debug", "PASSWORD=hunter2"));
  EXPECT_THAT(inputs->in_pod.environment, Contains("POD_NAMESPACE=team"));
}

TEST_F(GuestInputsTest, EachKeyOfAnObjectIsAFile) {
  make("configmaps",
       "{metadata: {name: settings}, data: {level: debug}, binaryData: {logo: AP8=}}");
  make("secrets", "{metadata: {name: login}, data: {password: aHVudGVyMg==}}");
  spec_.files = {{.path = "/etc/app", .object = "settings"},
                 {.path = "/etc/login", .is_secret = true, .object = "login"}};

  const Result<GuestInputs> inputs = read();

  ASSERT_TRUE(inputs.has_value()) << inputs.error().message();
  EXPECT_THAT(inputs->files, UnorderedElementsAre(Pair("/etc/app/level", "debug"),
                                                  Pair("/etc/app/logo", std::string("\0\xff", 2)),
                                                  Pair("/etc/login/password", "hunter2")));
}

TEST_F(GuestInputsTest, ObjectsOfOtherNamespacesAreNotRead) {
  make("configmaps", "{metadata: {name: settings}, data: {level: debug}}", "neighbours");
  want_variable("LEVEL", Source::ConfigMap, "settings", "level");

  expect_error(ErrorKind::NotFound, "ConfigMap settings: ");

  EXPECT_THAT(reads_, ElementsAre("GET /api/v1/namespaces/team/configmaps/settings"));
}

TEST_F(GuestInputsTest, WhatIsMissingIsNamedUnlessItIsOptional) {
  make("configmaps", "{metadata: {name: settings}, data: {level: debug}}");
  want_variable("COLOUR", Source::ConfigMap, "settings", "colour");
  expect_error(ErrorKind::NotFound, "env COLOUR: ConfigMap settings has no text at the key colour");

  spec_.environment.front().is_optional = true;
  want_variable("TOKEN", Source::Secret, "none", "token");
  expect_error(ErrorKind::NotFound, "Secret none: ");

  spec_.environment.back().is_optional = true;
  spec_.files = {{.path = "/etc/none", .object = "none", .is_optional = true}};
  const Result<GuestInputs> inputs = read();
  ASSERT_TRUE(inputs.has_value()) << inputs.error().message();
  EXPECT_THAT(inputs->environment, IsEmpty());
  EXPECT_THAT(inputs->files, IsEmpty());
}

TEST_F(GuestInputsTest, AVariableIsText) {
  // With a zero byte, and not base64.
  make("secrets", "{metadata: {name: login}, data: {zero: YQBi, broken: '%hunter2%'}}");
  want_variable("ZERO", Source::Secret, "login", "zero");
  expect_error(ErrorKind::NotFound, "env ZERO: Secret login has no text at the key zero");

  spec_.environment.clear();
  want_variable("BROKEN", Source::Secret, "login", "broken");
  expect_error(ErrorKind::NotFound, "env BROKEN: Secret login has no text at the key broken");
}

TEST_F(GuestInputsTest, ARefusalNamesTheObjectAndNoValue) {
  make("secrets", "{metadata: {name: login}, data: {password: aHVudGVyMg==}}");
  want_variable("PASSWORD", Source::Secret, "login", "password");
  on_arrival_ = [](const ApiRequest&) -> std::optional<ApiAnswer> {
    return simulation::status(403, "Forbidden", "secrets is forbidden");
  };

  expect_error(ErrorKind::Denied, "Secret login: secrets is forbidden");
}

TEST_F(GuestInputsTest, TheValuesOfOneOperatorAreBounded) {
  constexpr std::uint64_t kParts = limits::kOperatorInputBytesMax / limits::kMiB;
  const json::Value large =
      json::Object{{"metadata", json::Object{{"name", "large"}}},
                   {"data", json::Object{{"text", std::string(limits::kMiB, 'x')}}}};
  EXPECT_EQ(server_
                .handle({.method = "POST",
                         .target = "/api/v1/namespaces/team/configmaps",
                         .body = json::dump(large)},
                        time_.wall_now())
                .status,
            201);
  for (std::uint64_t i = 0; i < kParts; ++i)
    want_variable("LARGE", Source::ConfigMap, "large", "text");
  const Result<GuestInputs> most = read();
  ASSERT_TRUE(most.has_value()) << most.error().message();

  make("configmaps", "{metadata: {name: settings}, data: {level: x}}");
  spec_.files = {{.path = "/etc/app", .object = "settings"}};

  expect_error(ErrorKind::LimitExceeded, "more than 8 MiB together");
}

}  // namespace
}  // namespace hangar::operators
