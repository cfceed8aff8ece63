#include "kube/auth/credentials.h"

#include "base/base64.h"
#include "base/result.h"
#include "base/time.h"
#include "http/client.h"
#include "io/file.h"
#include "io/loop.h"
#include "io/run.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/auth/exec_plugin.h"
#include "kube/auth/kubeconfig.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::kube {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::filesystem::path;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kPem = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n";

class CredentialsTest : public ::testing::Test {
 protected:
  CredentialsTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "hangar.XXXXXX").string();
    directory_ = ::mkdtemp(pattern.data());
  }
  ~CredentialsTest() override { std::filesystem::remove_all(directory_); }

  path write(std::string_view name, std::string_view bytes) {
    EXPECT_TRUE(io::write_file(directory_ / name, bytes).has_value());
    return directory_ / name;
  }
  path write_script(std::string_view name, std::string_view body) {
    path file = write(name, "#!/bin/sh\n" + std::string(body));
    ::chmod(file.c_str(), 0700);
    return file;
  }
  LoginSource source() {
    LoginSource out{.service_account_directory = directory_ / "none"};
    out.environment = [this](const std::string& name) -> std::optional<std::string> {
      const auto found = environment_.find(name);
      return found == environment_.end() ? std::nullopt : std::optional(found->second);
    };
    return out;
  }
  // A login by a kubeconfig whose user is the YAML flow mapping `user`.
  Login login_as(std::string_view user) {
    const path file =
        write("config",
              fmt::format(
                  "current-context: x\ncontexts: [{{name: x, context: {{cluster: c, user: u}}}}]\n"
                  "clusters: [{{name: c, cluster: {{server: 'https://h'}}}}]\n"
                  "users: [{{name: u, user: {{{}}}}}]\n",
                  user));
    LoginSource where = source();
    where.kubeconfig = file;
    auto login = find_login(where);
    EXPECT_TRUE(login.has_value()) << login.error().message();
    return *std::move(login);
  }
  // A login by an exec plugin that is the shell script `body`.
  Login login_by_plugin(std::string_view body) {
    write_script("plugin", body);
    return login_as("exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin}");
  }

  template <class T>
  T run(io::Task<T> task) {
    return io::run_to_end(loop_, std::move(task));
  }
  std::string authorization(Credentials& credentials) {
    const auto grant = run(credentials.grant({}));
    if (!grant) return "error: " + grant.error().message();
    return std::string(http::find_header(grant->headers, "authorization").value_or("none"));
  }

  path directory_;
  std::map<std::string, std::string> environment_;
  io::Loop loop_;
};

std::string credential(std::string_view status) {
  return fmt::format(
      R"({{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{{{}}}}})",
      status);
}
std::string printing(std::string_view status) {
  return "cat <<'X'\n" + credential(status) + "\nX\n";
}

TEST_F(CredentialsTest, LooksForALoginInTheOrderOfKubectl) {
  const auto config = [](std::string_view server) {
    return fmt::format(
        "current-context: x\ncontexts: [{{name: x, context: {{cluster: c}}}}]\n"
        "clusters: [{{name: c, cluster: {{server: 'https://{}'}}}}]\n",
        server);
  };
  const auto found = [](const LoginSource& where) {
    const auto login = find_login(where);
    return login ? login->cluster.server : login.error().message();
  };
  LoginSource where = source();

  EXPECT_THAT(found(where), HasSubstr("no cluster configured"));
  std::filesystem::create_directory(directory_ / ".kube");
  write(".kube/config", config("home"));
  environment_["HOME"] = directory_;
  EXPECT_EQ(found(where), "https://home");
  std::filesystem::create_directory(directory_ / "sa");
  write("sa/token", "t");
  where.service_account_directory = directory_ / "sa";
  environment_["KUBERNETES_SERVICE_HOST"] = "fd00::1";
  environment_["KUBERNETES_SERVICE_PORT"] = "443";
  EXPECT_EQ(found(where), "https://[fd00::1]:443");
  environment_["KUBECONFIG"] =
      (directory_ / "missing").string() + "::" + write("list", config("list")).string();
  EXPECT_EQ(found(where), "https://list");
  where.kubeconfig = write("flag", config("flag"));
  EXPECT_EQ(found(where), "https://flag");
  where.kubeconfig = directory_ / "missing";
  EXPECT_THAT(found(where), HasSubstr("missing"));
}

TEST_F(CredentialsTest, UsesTheServiceAccountOfItsPod) {
  std::filesystem::create_directory(directory_ / "sa");
  write("sa/token", "first\n");
  write("sa/ca.crt", kPem);
  write("sa/namespace", "shop");
  LoginSource where = source();
  where.service_account_directory = directory_ / "sa";
  environment_["KUBERNETES_SERVICE_HOST"] = "10.0.0.1";
  environment_["KUBERNETES_SERVICE_PORT"] = "443";
  Credentials credentials(loop_, find_login(where).value(), Log());

  const auto grant = run(credentials.grant({}));

  EXPECT_EQ(credentials.server(), "https://10.0.0.1:443");
  EXPECT_EQ(credentials.namespace_(), "shop");
  EXPECT_EQ(grant->transport->ca_pem, kPem);
  EXPECT_EQ(grant->headers, (http::Headers{{"Authorization", "Bearer first"}}));
}

TEST_F(CredentialsTest, ReadsATokenFileAgainWhenTheServerRefusesTheToken) {
  write("token", "first");
  Credentials credentials(loop_, login_as("tokenFile: token"), Log());
  const auto before = run(credentials.grant({}));
  write("token", "second");

  EXPECT_EQ(authorization(credentials), "Bearer first");
  const auto renewed = run(credentials.renew(before->generation, {}));

  EXPECT_TRUE(renewed.value());
  EXPECT_EQ(authorization(credentials), "Bearer second");
  EXPECT_EQ(run(credentials.grant({}))->transport, before->transport);
}

TEST_F(CredentialsTest, SaysThatAFixedTokenCannotBeRenewed) {
  Credentials credentials(loop_, login_as("token: t"), Log());

  const auto grant = run(credentials.grant({}));

  EXPECT_EQ(authorization(credentials), "Bearer t");
  EXPECT_FALSE(run(credentials.renew(grant->generation, {})).value());
  EXPECT_TRUE(run(credentials.renew(grant->generation - 1, {})).value());
}

TEST_F(CredentialsTest, SendsBasicAuthentication) {
  Credentials credentials(loop_, login_as("username: me, password: secret"), Log());

  EXPECT_EQ(authorization(credentials), "Basic " + base64_encode("me:secret"));
}

TEST_F(CredentialsTest, ImpersonatesAsTheKubeconfigSays) {
  const Credentials credentials(
      loop_, login_as("as: a, as-uid: '1', as-groups: [g, h], as-user-extra: {'x/y': [z]}"), Log());

  EXPECT_EQ(credentials.impersonation(), (http::Headers{{"Impersonate-User", "a"},
                                                        {"Impersonate-Uid", "1"},
                                                        {"Impersonate-Group", "g"},
                                                        {"Impersonate-Group", "h"},
                                                        {"Impersonate-Extra-x%2Fy", "z"}}));
}

TEST_F(CredentialsTest, NamesContextFileAndFieldWhenAFileIsMissing) {
  Credentials credentials(loop_, login_as("client-certificate: a.pem, client-key: b.pem"), Log());

  const std::string said = authorization(credentials);

  EXPECT_THAT(said, HasSubstr("context x of " + (directory_ / "config").string()));
  EXPECT_THAT(said, HasSubstr("user.client-certificate: open"));
  EXPECT_THAT(said, HasSubstr("a.pem"));
}

TEST_F(CredentialsTest, TakesTokenAndCertificateFromAPlugin) {
  Credentials credentials(
      loop_,
      login_by_plugin(
          printing(R"("token":"t","clientCertificateData":"cert","clientKeyData":"key")")),
      Log());

  const auto grant = run(credentials.grant({}));

  ASSERT_TRUE(grant.has_value()) << grant.error().message();
  EXPECT_EQ(grant->headers, (http::Headers{{"Authorization", "Bearer t"}}));
  EXPECT_EQ(grant->transport->certificate_pem, "cert");
  EXPECT_EQ(grant->transport->key_pem, "key");
}

TEST_F(CredentialsTest, RunsAPluginOnceUntilItsCredentialExpires) {
  const std::string count = "cd '" + directory_.string() + "'; echo x >> runs; n=$(wc -l < runs)\n";
  const auto token_until = [&](WallTime expires) {
    return count + "cat <<X\n" +
           credential(R"("token":"t$n","expirationTimestamp":")" + to_rfc3339(expires) + "\"") +
           "\nX\n";
  };
  Credentials lasting(loop_, login_by_plugin(token_until(io::Loop::wall_now() + hours(1))), Log());

  EXPECT_EQ(authorization(lasting), "Bearer t1");
  EXPECT_EQ(authorization(lasting), "Bearer t1");
  const auto grant = run(lasting.grant({}));
  EXPECT_TRUE(run(lasting.renew(grant->generation, {})).value());
  EXPECT_EQ(authorization(lasting), "Bearer t2");
  // A server that refuses every token must not make us run the plugin for each request.
  EXPECT_FALSE(run(lasting.renew(grant->generation + 1, {})).value());
  EXPECT_EQ(authorization(lasting), "Bearer t2");
}

TEST_F(CredentialsTest, SharesOneRunAmongThoseThatWait) {
  const std::string body =
      "cd '" + directory_.string() + "'; echo x >> runs\n" + printing(R"("token":"t")");
  Credentials credentials(loop_, login_by_plugin(body), Log());
  int done = 0;
  const auto ask = [](Credentials& asked, int& count) -> io::Task<void> {
    EXPECT_TRUE((co_await asked.grant({})).has_value());
    ++count;
  };

  for (int index = 0; index < 10; ++index)
    loop_.spawn(ask(credentials, done));
  loop_.run_until([&done] { return done == 10; });

  EXPECT_EQ(io::read_file(directory_ / "runs", 100).value(), "x\n");
}

TEST_F(CredentialsTest, TellsWhatAPluginThatFailedSaid) {
  Credentials credentials(
      loop_, login_by_plugin("echo token-on-stdout; echo 'please log in' >&2; exit 3"), Log());

  const std::string said = authorization(credentials);

  EXPECT_THAT(said, HasSubstr("exit code 3: please log in"));
  EXPECT_THAT(said, HasSubstr("exec plugin"));
  EXPECT_THAT(said, Not(HasSubstr("token-on-stdout")));
}

TEST_F(CredentialsTest, TriesAPluginAgainAfterItFailed) {
  const std::string flag = (directory_ / "flag").string();
  Credentials credentials(loop_,
                          login_by_plugin("test -e '" + flag + "' || { touch '" + flag +
                                          "'; exit 1; }\n" + printing(R"("token":"t")")),
                          Log());

  EXPECT_THAT(authorization(credentials), HasSubstr("exit code 1"));
  EXPECT_EQ(authorization(credentials), "Bearer t");
}

TEST_F(CredentialsTest, EndsAPluginWhenItIsStopped) {
  // The child of the plugin also holds the pipe open: both must be killed.
  const std::string started = (directory_ / "started").string();
  Credentials credentials(loop_, login_by_plugin("touch '" + started + "'; sleep 1000 & wait"),
                          Log());
  std::stop_source stop;
  loop_.post([&stop] { stop.request_stop(); });

  const Result<Credentials::Grant> got = run(credentials.grant(stop.get_token()));

  ASSERT_FALSE(got.has_value());
  EXPECT_EQ(got.error().kind(), ErrorKind::Cancelled);
}

TEST_F(CredentialsTest, EndsAPluginThatTakesTooLong) {
  const ExecPlugin plugin{
      .api_version = "client.authentication.k8s.io/v1",
      .command = write_script("slow", "echo thinking >&2\nsleep 1000").string()};

  const auto result = run_exec_plugin(plugin, "{}", milliseconds(300), {});

  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind(), ErrorKind::Unavailable);
  EXPECT_THAT(result.error().message(), HasSubstr("did not exit within 300ms"));
}

TEST_F(CredentialsTest, HintsHowToInstallAPlugin) {
  const ExecPlugin plugin{.api_version = "client.authentication.k8s.io/v1",
                          .command = (directory_ / "none").string(),
                          .install_hint = "install the plugin"};

  const auto result = run_exec_plugin(plugin, "{}", seconds(10), {});

  EXPECT_THAT(result.error().message(), HasSubstr("program not found"));
  EXPECT_THAT(result.error().message(), HasSubstr("(install the plugin)"));
}

TEST_F(CredentialsTest, HandsArgumentsEnvironmentAndClusterToThePlugin) {
  ExecPlugin plugin{.api_version = "client.authentication.k8s.io/v1",
                    .command = write_script("echo",
                                            "printf '%s|' \"$@\" \"$EXTRA\" "
                                            "\"$KUBERNETES_EXEC_INFO\" >&2; exit 1")
                                   .string(),
                    .args = {"a b", "c"},
                    .env = {{"EXTRA", "e"}}};

  const auto result = run_exec_plugin(plugin, "{info}", seconds(10), {});

  EXPECT_THAT(result.error().message(), HasSubstr("a b|c|e|{info}|"));
}

TEST(ExecInfo, DescribesTheClusterWhenAsked) {
  const KubeconfigCluster cluster{.server = "https://h",
                                  .tls_server_name = "n",
                                  .proxy_url = "http://p",
                                  .exec_config = json::parse(R"({"a":1})").value()};
  ExecPlugin plugin{.api_version = "client.authentication.k8s.io/v1beta1", .command = "x"};

  const auto brief = json::parse(exec_info(plugin, cluster, "pem")).value();
  plugin.provide_cluster_info = true;
  const auto full = json::parse(exec_info(plugin, cluster, "pem")).value();

  EXPECT_EQ(json::string_at(brief, {"apiVersion"}), plugin.api_version);
  EXPECT_EQ(json::find(brief, {"spec", "cluster"}), nullptr);
  EXPECT_EQ(json::string_at(full, {"spec", "cluster", "server"}), "https://h");
  EXPECT_EQ(json::string_at(full, {"spec", "cluster", "certificate-authority-data"}), "cGVt");
  EXPECT_EQ(json::int_at(full, {"spec", "cluster", "config", "a"}), 1);
}

TEST(ExecCredential, RefusesWhatIsNoneWithoutRepeatingIt) {
  const ExecPlugin plugin{.api_version = "client.authentication.k8s.io/v1", .command = "x"};
  const struct {
    std::string output;
    std::string_view want;
  } cases[] = {
      {"top-secret", "is not JSON"},
      {R"({"kind":"top-secret"})", "is not an ExecCredential"},
      {R"({"kind":"ExecCredential","apiVersion":"top-secret"})", "is not of apiVersion"},
      {R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1"})",
       "has no status"},
      {credential(""), "has neither"},
      {credential(R"("clientKeyData":"top-secret")"), "or neither"},
      {credential(R"("token":"top-secret\nX: y")"), "line break"},
      {credential(R"("token":"top-secret","expirationTimestamp":"soon")"), "is not a time"},
  };
  for (const auto& [output, want] : cases) {
    const auto result = parse_exec_credential(output, plugin);

    ASSERT_FALSE(result.has_value()) << output;
    EXPECT_EQ(result.error().kind(), ErrorKind::InvalidInput);
    EXPECT_THAT(result.error().message(), HasSubstr(std::string(want)));
    EXPECT_THAT(result.error().message(), Not(HasSubstr("top-secret")));
  }
}

}  // namespace
}  // namespace hangar::kube
