// The flight contract with real programs: tests/guests/flights/behave, an ordinary Go program,
// under the host's WASI. It needs no cluster: the test answers the flights' lookups.

#include "abi/flight/evaluation.h"
#include "abi/flight/lookups.h"
#include "base/limits.h"
#include "base/result.h"
#include "io/file.h"
#include "io/loop.h"
#include "io/task.h"
#include "wasm/limits.h"
#include "wasm/module.h"
#include "wasm/test_guests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hangar::abi::flight {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;

class Cluster : public Lookups {
 public:
  io::Task<LookupAnswer> lookup(LookupRequest request) override {
    asked.push_back(request.namespace_ + "/" + request.kind + "." + request.api_version + ":" +
                    request.name);
    co_return answer;
  }
  io::Task<LookupAnswer> rest_mapping(std::string group, std::string kind) override {
    asked.push_back(group + ":" + kind);
    co_return answer;
  }

  LookupAnswer answer;
  std::vector<std::string> asked;
};

class GoFlight : public testing::Test {
 public:
  // `spec`: the instance's, without braces.
  Result<Output> behave(const std::string& spec, Evaluation evaluation = {}) {
    evaluation.stdin_bytes = R"({"metadata":{"name":"it","namespace":"ns"},"spec":{)" + spec + "}}";
    return rig_.await(evaluate(runtime_, module(), std::move(evaluation), cluster_, {}));
  }

 protected:
  std::shared_ptr<const wasm::Module> module() {
    static const auto bytes = [] {
      auto read = io::read_file(std::filesystem::path(HANGAR_FLIGHTS_DIR) / "behave.wasm",
                                limits::kModuleBytesMax);
      EXPECT_TRUE(read.has_value());
      return std::make_shared<const std::string>(*std::move(read));
    }();
    auto loaded = rig_.try_load(bytes);
    EXPECT_TRUE(loaded.has_value()) << loaded.error().message();
    return *loaded;
  }

  wasm::GuestRig rig_;
  Runtime runtime_{rig_.engine()};
  Cluster cluster_;
};

TEST_F(GoFlight, IsPooledAndImportsOnlyWhatFlightsGet) {
  EXPECT_EQ(module()->allocation(), wasm::Module::Allocation::Pooled);
  EXPECT_TRUE(runtime_.check(*module()).has_value());
}

TEST_F(GoFlight, SeesArgumentsEnvironmentAndInput) {
  const Result<Output> output = behave(
      R"("behaviour":"dump")",
      {.release = "examples.com.Backend.ns.it", .namespace_ = "ns", .host_version = "1.2.3"});

  ASSERT_TRUE(output.has_value()) << output.error().message();
  EXPECT_EQ(output->exit_code, 0U);
  EXPECT_THAT(output->stdout_bytes, HasSubstr(R"("argv":"[\"examples.com.Backend.ns.it\"]")"));
  EXPECT_THAT(
      output->stdout_bytes,
      HasSubstr(R"("env":"HANGAR_VERSION=1.2.3\nNAMESPACE=ns\nYOKE_NAMESPACE=ns\nYOKE_RELEASE=)"
                R"(examples.com.Backend.ns.it\nYOKE_VERSION=v0.20.12")"));
}

TEST_F(GoFlight, ClocksRunAndRandomnessIsRandom) {
  const Result<Output> first = behave(R"("behaviour":"clocks")");
  const Result<Output> second = behave(R"("behaviour":"clocks")");

  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_THAT(first->stdout_bytes, HasSubstr(R"("elapsed":"true")"));
  EXPECT_NE(first->stdout_bytes, second->stdout_bytes);
}

TEST_F(GoFlight, LooksUpThroughTheHost) {
  cluster_.answer = {.state = LookupState::Ok, .body = R"({"data":{"color":"blue"}})"};
  const Result<Output> output = behave(
      R"("behaviour":"lookup","lookup":{"name":"c","namespace":"n","kind":"ConfigMap","apiVersion":"v1"})");

  ASSERT_TRUE(output.has_value()) << output.error().message();
  EXPECT_THAT(output->stdout_bytes, HasSubstr(R"("color":"blue")"));
  EXPECT_THAT(output->stdout_bytes, HasSubstr(R"("outcome":"found")"));
  EXPECT_THAT(cluster_.asked, ElementsAre("n/ConfigMap.v1:c"));
}

TEST_F(GoFlight, IsToldWhyALookupFailed) {
  cluster_.answer = {.state = LookupState::NotFound, .body = "configmaps \"c\" not found"};
  const Result<Output> output =
      behave(R"("behaviour":"lookup","lookup":{"name":"c","kind":"ConfigMap","apiVersion":"v1"})");

  ASSERT_TRUE(output.has_value()) << output.error().message();
  EXPECT_THAT(output->stdout_bytes, HasSubstr(R"("outcome":"NotFound")"));
  EXPECT_THAT(output->stdout_bytes, HasSubstr("not found"));

  cluster_.answer.state = LookupState::Forbidden;
  const Result<Output> failed =
      behave(R"("behaviour":"lookup","lookup":{"name":"c","kind":"ConfigMap","apiVersion":"v1"})");
  ASSERT_TRUE(failed.has_value());
  EXPECT_EQ(failed->exit_code, 1U);
  EXPECT_THAT(failed->stderr_bytes, HasSubstr("failed to lookup ConfigMap c"));
}

TEST_F(GoFlight, TakesAnAnswerOfMegabytes) {
  cluster_.answer = {.state = LookupState::Ok,
                     .body = R"({"data":{"big":")" + std::string(3 * limits::kMiB, 'x') + "\"}}"};
  const Result<Output> output = behave(
      R"("behaviour":"lookup","lookup":{"name":"c","namespace":"n","kind":"ConfigMap","apiVersion":"v1"})");
  ASSERT_TRUE(output.has_value()) << output.error().message();
  EXPECT_GT(output->stdout_bytes.size(), 3 * limits::kMiB);
}

TEST_F(GoFlight, AsksForMappings) {
  cluster_.answer = {
      .state = LookupState::Ok,
      .body =
          R"({"Group":"apps","Version":"v1","Kind":"Deployment","Resource":"deployments","Namespaced":true})"};
  const Result<Output> output =
      behave(R"("behaviour":"restMapping","apiVersion":"apps/v1","kind":"Deployment")");

  ASSERT_TRUE(output.has_value()) << output.error().message();
  EXPECT_THAT(output->stdout_bytes, HasSubstr("deployments"));
  EXPECT_THAT(cluster_.asked, ElementsAre("apps/v1:Deployment"));
}

TEST_F(GoFlight, PanicsAndExitCodesAreOutputsWithTheirStderr) {
  const Result<Output> panicked = behave(R"("behaviour":"panic")");
  ASSERT_TRUE(panicked.has_value()) << panicked.error().message();
  EXPECT_EQ(panicked->exit_code, 2U);
  EXPECT_THAT(panicked->stderr_bytes, HasSubstr("panic: behaviour panic of it"));

  const Result<Output> left =
      behave(R"("behaviour":"raw","stdout":"[]","stderr":"a warning","exitCode":7)");
  ASSERT_TRUE(left.has_value()) << left.error().message();
  EXPECT_EQ(left->exit_code, 7U);
  EXPECT_EQ(left->stdout_bytes, "[]");
  EXPECT_EQ(left->stderr_bytes, "a warning");
}

TEST_F(GoFlight, RunsOutOfItsMemoryByItself) {
  const Result<Output> output =
      behave(R"("behaviour":"memory","mib":200)", {.memory_bytes_max = 64 * limits::kMiB});

  ASSERT_TRUE(output.has_value()) << output.error().message();
  EXPECT_EQ(output->exit_code, 2U);
  EXPECT_THAT(output->stderr_bytes, HasSubstr("out of memory"));
  EXPECT_LE(output->memory_bytes, 64 * limits::kMiB);
}

TEST_F(GoFlight, EndsAtItsTimeoutWhetherItSpinsOrSleeps) {
  for (const std::string behaviour :
       {R"("behaviour":"endless")", R"("behaviour":"sleep","milliseconds":60000)"}) {
    const Result<Output> output = behave(behaviour, {.timeout = milliseconds(100)});
    ASSERT_FALSE(output.has_value());
    EXPECT_THAT(output.error().message(),
                HasSubstr("module closed with context deadline exceeded: execution timeout "
                          "(100ms) exceeded"));
  }
}

TEST_F(GoFlight, EndlessRecursionEndsInTheGuest) {
  const Result<Output> output = behave(R"("behaviour":"recurse")");
  if (output) {
    EXPECT_EQ(output->exit_code, 2U);
    EXPECT_THAT(output->stderr_bytes, HasSubstr("stack"));
  } else {
    EXPECT_EQ(output.error().kind(), ErrorKind::GuestFault) << output.error().message();
    EXPECT_THAT(output.error().message(), HasSubstr("call stack exhausted"));
  }
}

TEST_F(GoFlight, StdoutIsBounded) {
  const Result<Output> fits = behave(R"("behaviour":"hugeStdout","mib":15)");
  ASSERT_TRUE(fits.has_value()) << fits.error().message();
  EXPECT_GT(fits->stdout_bytes.size(), 15 * limits::kMiB);

  const Result<Output> output = behave(R"("behaviour":"hugeStdout","mib":16)");
  ASSERT_FALSE(output.has_value());
  EXPECT_EQ(output.error().kind(), ErrorKind::LimitExceeded);
  EXPECT_THAT(output.error().message(), HasSubstr("stdout is larger than"));
}

}  // namespace
}  // namespace hangar::abi::flight
