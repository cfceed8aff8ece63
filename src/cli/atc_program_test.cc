#include "cli/atc_program.h"

#include "base/result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::cli {
namespace {

using Variables = std::map<std::string, std::string, std::less<>>;
using testing::Contains;
using testing::HasSubstr;

// The variables of the Deployment that yoke's installer creates, as far as they have no default.
const Variables kRequired = {{"TLS_CA_CERT", "/conf/tls/ca.crt"},
                             {"TLS_SERVER_CERT", "/conf/tls/server.crt"},
                             {"TLS_SERVER_KEY", "/conf/tls/server.key"},
                             {"SVC_NAME", "atc-atc"},
                             {"SVC_NAMESPACE", "atc"},
                             {"SVC_PORT", "80"}};

Result<AtcSettings> read(Variables variables, const std::vector<std::string>& arguments = {}) {
  return read_atc_settings(arguments, [&](std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

Variables with(Variables more) {
  more.insert(kRequired.begin(), kRequired.end());
  return more;
}

std::string setting(const Result<AtcSettings>& read, std::string_view name) {
  if (!read) return "error: " + read.error().message();
  for (const AtcSettings::Entry& entry : read->entries) {
    if (entry.setting == name) return entry.text;
  }
  return "";
}

TEST(AtcProgram, ReadsWhatItsDeploymentGivesIt) {
  const Result<AtcSettings> read_ = read(with({{"PORT", "3000"},
                                               {"DOCKER_CONFIG_SECRET_NAME", "registries"},
                                               {"LOG_FORMAT", "text"},
                                               {"VERBOSE", "true"},
                                               {"CACHE_FS", "/cache"},
                                               {"DISABLE_CUSTOM_READINESS", "false"},
                                               {"MODULE_ALLOW_LIST", "oci://a/*,oci://b/*"},
                                               {"CONCURRENCY", "7"},
                                               {"MODULE_VERIFICATION_KEYS_PATH", "/keys.json"},
                                               {"KUBE", "/kubeconfig"}}));

  const std::vector<std::pair<std::string, std::string>> expected = {
      {"webhook-bind-address", ":3000"},
      {"docker-config-secret", "registries"},
      {"log-format", "console"},
      {"log-level", "debug"},
      {"module-cache-dir", "/cache/hangar"},
      {"readiness-rules-from", "*"},
      {"module-allow-list", "oci://a/*,oci://b/*"},
      {"max-concurrent-reconciles", "14"},
      {"module-verification-keys", "/keys.json"},
      {"kubeconfig", "/kubeconfig"},
      {"webhook-service", "atc/atc-atc:80"},
      {"namespace", "atc"},
      {"webhook-ca-file", "/conf/tls/ca.crt"},
      {"webhook-certificate-file", "/conf/tls/server.crt"},
      {"webhook-key-file", "/conf/tls/server.key"},
      {"features", "airways,flights"}};
  for (const auto& [name, text] : expected)
    EXPECT_EQ(setting(read_, name), text) << name;
}

TEST(AtcProgram, HasItsDefaults) {
  const Result<AtcSettings> read_ = read(kRequired);

  EXPECT_EQ(setting(read_, "webhook-bind-address"), ":3000");
  EXPECT_EQ(setting(read_, "module-cache-dir"), "/tmp/hangar");
  EXPECT_EQ(setting(read_, "log-format"), "json");
  EXPECT_EQ(setting(read_, "log-level"), "");
  EXPECT_EQ(setting(read_, "module-allow-list"), "");
  EXPECT_EQ(setting(read(with({{"TMPDIR", "/scratch"}})), "module-cache-dir"), "/scratch/hangar");
  EXPECT_EQ(setting(read(with({{"CONCURRENCY", "-3"}})), "max-concurrent-reconciles"), "2");
  EXPECT_EQ(setting(read(with({{"DISABLE_CUSTOM_READINESS", "1"}})), "readiness-rules-from"), "-");
}

TEST(AtcProgram, TakesEachVariableAsAFlagThatWins) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"--port", "4000", "--verbose", "--cache-fs=/Flag"},
        {"-port=4000", "-verbose", "-cache-fs", "/Flag"},
        {"--PORT=4000", "--verbose=true", "--cache-fs=/Flag"}}) {
    const Result<AtcSettings> read_ =
        read(with({{"PORT", "3000"}, {"CACHE_FS", "/env"}}), arguments);

    EXPECT_EQ(setting(read_, "webhook-bind-address"), ":4000");
    EXPECT_EQ(setting(read_, "log-level"), "debug");
    EXPECT_EQ(setting(read_, "module-cache-dir"), "/Flag/hangar");
  }
}

TEST(AtcProgram, NamesEverythingThatIsMissingOrWrong) {
  Variables variables = kRequired;
  variables.erase("SVC_NAME");
  variables["SVC_PORT"] = "";
  variables["PORT"] = "many";
  variables["VERBOSE"] = "perhaps";

  const Result<AtcSettings> read_ = read(variables);

  ASSERT_FALSE(read_);
  const std::string said = read_.error().message();
  EXPECT_THAT(said, HasSubstr("failed to parse variable(s)"));
  EXPECT_THAT(said, HasSubstr("SVC_NAME: field is required"));
  EXPECT_THAT(said, HasSubstr("SVC_PORT: field is declared but empty: cannot be empty"));
  EXPECT_THAT(said, HasSubstr("PORT: strconv.ParseInt: parsing \"many\": invalid syntax"));
  EXPECT_THAT(said, HasSubstr("VERBOSE: strconv.ParseBool: parsing \"perhaps\": invalid syntax"));
}

TEST(AtcProgram, SaysWhichFlagsMeanNothing) {
  const Result<AtcSettings> read_ = read(kRequired, {"--memory", "--cache-fs", "/x", "stray"});

  ASSERT_TRUE(read_) << read_.error().message();
  EXPECT_THAT(read_->remarks, Contains(HasSubstr("--memory")));
  EXPECT_THAT(read_->remarks, testing::Not(Contains(HasSubstr("--cache-fs"))));
}

}  // namespace
}  // namespace hangar::cli
