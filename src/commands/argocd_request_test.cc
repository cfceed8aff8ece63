#include "commands/argocd_request.h"

#include "base/result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::commands {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(ArgocdRequest, IsReadAsItIsWritten) {
  const ArgoRequest request{.source = std::string("\0asm", 4),
                            .path = "main.wasm",
                            .checksum = "abc",
                            .release = "web",
                            .namespace_ = "shop",
                            .args = {"-v"},
                            .environment = {"A=b=c"},
                            .input = "{}",
                            .memory_mib_max = 64,
                            .timeout = std::chrono::milliseconds(1500),
                            .insecure = true,
                            .cluster_access = true,
                            .resource_matchers = {"Secret"}};

  const Result<ArgoRequest> read = parse_argo_request(to_json(request));

  ASSERT_TRUE(read.has_value()) << read.error().message();
  EXPECT_EQ(read->source, request.source);
  EXPECT_EQ(read->path, request.path);
  EXPECT_EQ(read->checksum, request.checksum);
  EXPECT_EQ(read->release, request.release);
  EXPECT_EQ(read->namespace_, request.namespace_);
  EXPECT_EQ(read->args, request.args);
  EXPECT_EQ(read->environment, request.environment);
  EXPECT_EQ(read->input, request.input);
  EXPECT_EQ(read->memory_mib_max, request.memory_mib_max);
  EXPECT_EQ(read->timeout, request.timeout);
  EXPECT_TRUE(read->insecure);
  EXPECT_TRUE(read->cluster_access);
  EXPECT_EQ(read->resource_matchers, request.resource_matchers);
}

// As Go's encoder writes it, with null for empty members.
TEST(ArgocdRequest, IsThatOfYokesPlugin) {
  constexpr std::string_view kText =
      R"({"Source":null,"ClusterAccess":{"Enabled":true,"ResourceMatchers":null},)"
      R"("Path":"oci://registry/flight:v1","Checksum":"","Release":"foo","Namespace":"bar",)"
      R"("Args":["a"],"Env":{"FOO":"BAR"},"Input":"x","MaxMemoryMib":0,"Timeout":2000000000,)"
      R"("Insecure":false})";

  const Result<ArgoRequest> read = parse_argo_request(kText);

  ASSERT_TRUE(read.has_value()) << read.error().message();
  EXPECT_EQ(read->source, "");
  EXPECT_EQ(read->path, "oci://registry/flight:v1");
  EXPECT_EQ(read->timeout, std::chrono::seconds(2));
  EXPECT_TRUE(read->cluster_access);
  EXPECT_THAT(read->resource_matchers, IsEmpty());
  EXPECT_THAT(read->environment, ElementsAre("FOO=BAR"));
}

TEST(ArgocdRequest, IgnoresCaseAndUnknownMembersAsGoDoes) {
  const Result<ArgoRequest> read =
      parse_argo_request(R"({"path": "https://a", "RELEASE": "web", "more": 1})");

  ASSERT_TRUE(read.has_value()) << read.error().message();
  EXPECT_EQ(read->path, "https://a");
  EXPECT_EQ(read->release, "web");
}

TEST(ArgocdRequest, NamesTheMemberThatIsWrong) {
  const std::vector<std::pair<std::string_view, std::string_view>> cases = {
      {"", ""},
      {"[]", "not a JSON object"},
      {R"({"Source": "?"})", "Source: must be in base64"},
      {R"({"Path": 1})", "Path: must be a string"},
      {R"({"Args": ["a", 1]})", "Args: must be a list of strings"},
      {R"({"Env": {"A=B": "c"}})", "Env has a name"},
      {R"({"Env": {"": "c"}})", "Env has a name"},
      {R"({"Env": {"A": 1}})", "Env.A: must be a string"},
      {R"({"Timeout": "5s"})", "Timeout: must be an integer"},
      {R"({"MaxMemoryMib": -1})", "MaxMemoryMib: must be a number of MiB"},
      {R"({"Insecure": "yes"})", "Insecure: must be true or false"},
      {R"({"ClusterAccess": true})", "ClusterAccess: must be an object"},
      {R"({"ClusterAccess": {"ResourceMatchers": "*"}})",
       "ClusterAccess.ResourceMatchers: must be a list"}};

  for (const auto& [text, words] : cases) {
    const Result<ArgoRequest> read = parse_argo_request(text);
    ASSERT_FALSE(read.has_value()) << text;
    EXPECT_EQ(read.error().kind(), ErrorKind::InvalidInput) << text;
    EXPECT_THAT(read.error().message(), HasSubstr(words)) << text;
  }
}

}  // namespace
}  // namespace hangar::commands
