#include "modules/docker_config.h"

#include "base/result.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::modules {
namespace {

DockerConfig parsed(std::string_view text) {
  Result<DockerConfig> config = DockerConfig::parse(text);
  EXPECT_TRUE(config.has_value()) << config.error().message();
  return *config;
}

std::string user_for(const DockerConfig& config, std::string_view registry,
                     std::string_view repository = "team/f") {
  const Result<Credential> found = config.find(registry, repository);
  return found ? found->username : found.error().message();
}

TEST(DockerConfig, ReadsAllFormsOfAnEntry) {
  const DockerConfig config = parsed(R"({"auths": {
    "a.example": {"auth": "dXNlcjpwYTpzcw=="},
    "b.example": {"username": "u", "password": "p"},
    "c.example": {"auth": "PHRva2VuPjo=", "identitytoken": "refresh"},
    "d.example": {"registrytoken": "bearer"}}})");

  EXPECT_EQ(config.find("a.example", "f")->username, "user");
  EXPECT_EQ(config.find("a.example", "f")->password, "pa:ss");
  EXPECT_EQ(config.find("b.example", "f")->password, "p");
  EXPECT_EQ(config.find("c.example", "f")->identity_token, "refresh");
  EXPECT_EQ(config.find("d.example", "f")->registry_token, "bearer");
  EXPECT_TRUE(config.find("e.example", "f")->is_anonymous());
}

TEST(DockerConfig, MatchesTheHostAndThePortExactly) {
  const DockerConfig config = parsed(R"({"auths": {
    "https://A.example/v2/": {"username": "a", "password": "p"},
    "a.example:5000": {"username": "port", "password": "p"}}})");

  EXPECT_EQ(user_for(config, "a.example"), "a");
  EXPECT_EQ(user_for(config, "a.example:5000"), "port");
  EXPECT_EQ(user_for(config, "a.example:5001"), "");
  EXPECT_EQ(user_for(config, "b.a.example"), "");
  EXPECT_EQ(user_for(config, "a.example.evil"), "");
}

TEST(DockerConfig, KnowsTheNamesOfDockerHub) {
  for (const std::string name :
       {"https://index.docker.io/v1/", "docker.io", "registry-1.docker.io", "index.docker.io"}) {
    const DockerConfig config =
        parsed(R"({"auths": {")" + name + R"(": {"username": "hub", "password": "p"}}})");

    EXPECT_EQ(user_for(config, "docker.io"), "hub") << name;
  }
}

TEST(DockerConfig, PrefersTheLongestPath) {
  const DockerConfig config = parsed(R"({"auths": {
    "r.example": {"username": "all", "password": "p"},
    "r.example/team": {"username": "team", "password": "p"},
    "r.example/team/f": {"username": "f", "password": "p"}}})");

  EXPECT_EQ(user_for(config, "r.example", "other"), "all");
  EXPECT_EQ(user_for(config, "r.example", "team2/f"), "all");
  EXPECT_EQ(user_for(config, "r.example", "team/g"), "team");
  EXPECT_EQ(user_for(config, "r.example", "team/f"), "f");
}

TEST(DockerConfig, SaysThatItRunsNoHelper) {
  const DockerConfig config = parsed(R"({"auths": {"a.example": {}},
    "credHelpers": {"a.example": "cloud"}, "credsStore": "desktop"})");

  const Result<Credential> found = config.find("a.example", "f");

  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().kind(), ErrorKind::Denied);
  EXPECT_NE(found.error().message().find("docker-credential-cloud"), std::string::npos);
  EXPECT_TRUE(config.find("b.example", "f")->is_anonymous());
}

TEST(DockerConfig, NeverRepeatsASecretInAnError) {
  for (const std::string_view text :
       {R"(hunter2)", R"([])", R"({"auths": {"a.example": {"auth": "hunter2!"}}})",
        R"({"auths": {"a.example": {"auth": "aHVudGVyMg=="}}})"}) {
    const Result<DockerConfig> config = DockerConfig::parse(text);

    ASSERT_FALSE(config.has_value()) << text;
    EXPECT_EQ(config.error().kind(), ErrorKind::InvalidInput);
    EXPECT_EQ(config.error().message().find("hunter2"), std::string::npos);
  }
}

TEST(Credential, HasAnIdentityThatTellsNothingOfIt) {
  const Credential user{.username = "user", .password = "s3cret"};
  EXPECT_EQ(Credential().id(), "") << "anonymous";
  EXPECT_EQ(user.id(), (Credential{.username = "user", .password = "s3cret"}.id()));
  EXPECT_EQ(user.id().find("s3cret"), std::string::npos);
  const std::vector<Credential> others = {
      {.username = "user", .password = "rotated"},
      {.username = "another", .password = "s3cret"},
      {.username = "user 6:s3cret"},
      {.username = "users3cret"},
      {.identity_token = "s3cret"},
      {.registry_token = "s3cret"},
  };
  std::set<std::string> ids = {user.id()};
  for (const Credential& other : others)
    EXPECT_TRUE(ids.insert(other.id()).second);
}

}  // namespace
}  // namespace hangar::modules
