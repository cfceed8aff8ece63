#include "kube/auth/kubeconfig.h"

#include "base/result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kFull = R"(
apiVersion: v1
kind: Config
current-context: dev
preferences: {}
clusters:
- name: c
  cluster:
    server: https://10.0.0.1:6443/
    certificate-authority: pki/ca.crt
    tls-server-name: kubernetes.default
    proxy-url: http://proxy:3128
    extensions:
    - name: client.authentication.k8s.io/exec
      extension: {audience: x}
users:
- name: u
  user:
    client-certificate-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==
    client-key: /abs/key.pem
    as: someone
    as-groups: [a, b]
    as-user-extra: {scopes: [x, z]}
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: ./bin/plugin
      args: [get, token]
      env: [{name: A, value: "1"}]
      provideClusterInfo: true
contexts:
- name: dev
  context: {cluster: c, user: u, namespace: shop}
- name: lost
  context: {cluster: nowhere, user: u}
- name: stranger
  context: {cluster: c, user: nobody}
- name: anonymous
  context: {cluster: c}
)";

Kubeconfig parse(std::string_view text, const char* file = "/home/me/.kube/config") {
  auto config = parse_kubeconfig(text, file);
  EXPECT_TRUE(config.has_value()) << config.error().message();
  return config ? *std::move(config) : Kubeconfig();
}

// Resolves a config with one context whose cluster and user have these fields (YAML flow mappings).
Result<Login> resolve_with(std::string_view cluster, std::string_view user) {
  const std::string text =
      "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"
      "clusters: [{name: c, cluster: {" +
      std::string(cluster) + "}}]\nusers: [{name: u, user: {" + std::string(user) + "}}]\n";
  const Kubeconfig config = HANGAR_TRY(parse_kubeconfig(text, "/k/config"));
  return resolve(config, "");
}

TEST(Kubeconfig, ResolvesTheCurrentContext) {
  const Login login = resolve(parse(kFull), "").value();

  EXPECT_EQ(login.cluster.server, "https://10.0.0.1:6443");
  EXPECT_EQ(login.cluster.certificate_authority.file, "/home/me/.kube/pki/ca.crt");
  EXPECT_EQ(login.cluster.tls_server_name, "kubernetes.default");
  EXPECT_EQ(login.cluster.proxy_url, "http://proxy:3128");
  EXPECT_EQ(json::string_at(login.cluster.exec_config, {"audience"}), "x");
  EXPECT_EQ(login.user.client_certificate.text, "-----BEGIN CERTIFICATE-----\n");
  EXPECT_EQ(login.user.client_key.file, "/abs/key.pem");
  EXPECT_EQ(login.user.as, "someone");
  EXPECT_THAT(login.user.as_groups, ElementsAre("a", "b"));
  EXPECT_THAT(login.user.as_user_extra.at("scopes"), ElementsAre("x", "z"));
  EXPECT_EQ(login.user.exec->command, "/home/me/.kube/bin/plugin");
  EXPECT_THAT(login.user.exec->args, ElementsAre("get", "token"));
  EXPECT_THAT(login.user.exec->env, ElementsAre(std::pair<std::string, std::string>("A", "1")));
  EXPECT_TRUE(login.user.exec->provide_cluster_info);
  EXPECT_EQ(login.namespace_, "shop");
  EXPECT_EQ(login.source, "context dev of /home/me/.kube/config");
}

TEST(Kubeconfig, NamesWhatAContextMisses) {
  const Kubeconfig config = parse(kFull);

  EXPECT_THAT(resolve(config, "none").error().message(), HasSubstr("no context \"none\""));
  EXPECT_THAT(resolve(config, "lost").error().message(),
              HasSubstr("context lost of /home/me/.kube/config: no cluster \"nowhere\""));
  EXPECT_THAT(resolve(config, "stranger").error().message(), HasSubstr("no user \"nobody\""));
  EXPECT_TRUE(resolve(config, "anonymous").has_value());
  EXPECT_THAT(resolve(Kubeconfig(), "").error().message(), HasSubstr("no current-context"));
}

TEST(Kubeconfig, TakesTheFirstFileThatHasAName) {
  const Kubeconfig first = parse(
      "clusters: [{name: c, cluster: {server: 'https://first'}}]\n"
      "contexts: [{name: x, context: {cluster: c, user: u}}]",
      "/first");
  const Kubeconfig second = parse(
      "current-context: x\nclusters: [{name: c, cluster: {server: 'https://second'}}]\n"
      "users: [{name: u, user: {token: t}}]",
      "/second");

  const Login login = resolve(merge(first, second), "").value();

  EXPECT_EQ(login.cluster.server, "https://first");
  EXPECT_EQ(login.user.token, "t");
}

TEST(Kubeconfig, ReadsAnEmptyFileAsNothing) {
  EXPECT_TRUE(parse("").contexts.empty());
  EXPECT_TRUE(parse("# nothing\n").contexts.empty());
}

TEST(Kubeconfig, AcceptsJson) {
  EXPECT_EQ(parse(R"({"kind":"Config","current-context":"a"})").current_context, "a");
}

TEST(Kubeconfig, NamesTheFileAndTheFieldThatIsWrong) {
  const struct {
    std::string_view text, want;
  } cases[] = {
      {"kind: Pod", "/f: kind is not Config"},
      {"[]", "/f:  is not an object"},
      {"clusters: 1", "/f: clusters is not a list"},
      {"clusters: [1]", "/f: clusters is not an object"},
      {"clusters: [{name: a, cluster: {server: 1}}]", "/f: clusters[a].cluster.server is not text"},
      {"clusters: [{name: a}, {name: a}]", "clusters has two entries with the name \"a\""},
      {"clusters: [{name: a, cluster: {certificate-authority-data: '*'}}]",
       "clusters[a].cluster.certificate-authority-data is not base64"},
      {"clusters: [{name: a, cluster: {certificate-authority-data: aGk=}}]",
       "certificate-authority-data holds no PEM"},
      {"clusters: [{name: a, cluster: {insecure-skip-tls-verify: maybe}}]",
       "insecure-skip-tls-verify is neither"},
      {"users: [{name: a, user: {auth-provider: {name: gcp}}}]", "auth-provider is not supported"},
      {"users: [{name: a, user: {exec: {command: x}}}]", "users[a].user.exec.apiVersion must be"},
      {"users: [{name: a, user: {exec: {apiVersion: client.authentication.k8s.io/v1}}}]",
       "exec.command is missing"},
      {"users: [{name: a, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: x, "
       "interactiveMode: Always}}}]",
       "exec.interactiveMode is Always"},
      {"users: [{name: a, user: {as-groups: [1]}}]", "as-groups has an element that is not text"},
      {"{}\n---\n{}", "/f: more than one document"},
      {"a: [", "/f: "},
  };
  for (const auto& [text, want] : cases) {
    const auto config = parse_kubeconfig(text, "/f");

    ASSERT_FALSE(config.has_value()) << text;
    EXPECT_EQ(config.error().kind(), ErrorKind::InvalidInput) << text;
    EXPECT_THAT(config.error().message(), HasSubstr(std::string(want)));
  }
}

TEST(Kubeconfig, RefusesFieldsThatContradictEachOther) {
  constexpr std::string_view kServer = "server: 'https://h'";
  const struct {
    std::string_view cluster, user, want;
  } cases[] = {
      {"", "", "cluster.server is missing"},
      {"server: 'ftp://h'", "", "cluster.server must begin with"},
      {"server: 'https://'", "", "cluster.server has no host"},
      {"server: 'https://h?a=b'", "", "neither query nor fragment"},
      {"server: 'https://me:secret@h'", "", "must not hold credentials"},
      {kServer, "token: a, username: b", "both a token and a username"},
      {kServer, "client-key: k", "client-certificate and client-key, or neither"},
      {"server: 'https://h', insecure-skip-tls-verify: true, certificate-authority: f", "",
       "both certificate-authority and insecure-skip-tls-verify"},
      {kServer, "as-groups: [g]", "user.as is missing"},
      {kServer, R"(token: "a\r\nX: y")", "control character"},
  };
  for (const auto& [cluster, user, want] : cases) {
    const auto login = resolve_with(cluster, user);

    ASSERT_FALSE(login.has_value()) << want;
    EXPECT_THAT(login.error().message(), HasSubstr(std::string(want)));
    EXPECT_THAT(login.error().message(), Not(HasSubstr("secret")));
  }
}

TEST(Kubeconfig, GuessesTheSchemeAsClientGoDoes) {
  EXPECT_EQ(resolve_with("server: 'h:1'", "")->cluster.server, "http://h:1");
  EXPECT_EQ(resolve_with("server: 'h:1', certificate-authority: f", "")->cluster.server,
            "https://h:1");
}

}  // namespace
}  // namespace hangar::kube
