#include "host/node_settings.h"

#include "host/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::host {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Result<Config> from_environment(const std::map<std::string, std::string>& variables) {
  Config config;
  const Result<> applied = apply_environment(config, [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
  if (!applied) return std::unexpected(applied.error());
  return config;
}

nodes::Options options_of(std::string_view file) {
  Config config;
  EXPECT_TRUE(apply_file(config, file)) << file;
  return node_options(config, "here");
}

TEST(NodeSettings, AreReadFromThePublishedVariables) {
  const Config config = from_environment({{"INSTALLER_IMAGE", "installer:v1"},
                                          {"AUTO_PROVISION_NODES", "True"},
                                          {"CONTROLLER_NAMESPACE", "kwasm"}})
                            .value();

  EXPECT_TRUE(has_node_provisioning(config));
  EXPECT_EQ(config.nodes.installer_image, "installer:v1");
  EXPECT_TRUE(config.nodes.auto_provision);
  EXPECT_EQ(lease_namespace(config, "own"), "kwasm");
}

TEST(NodeSettings, OfOurOwnNamesWin) {
  const Config config =
      from_environment({{"INSTALLER_IMAGE", "theirs"}, {"HANGAR_INSTALLER_IMAGE", "ours"}}).value();

  EXPECT_EQ(config.nodes.installer_image, "ours");
}

TEST(NodeSettings, SayWhichVariableIsWrong) {
  const Result<Config> config = from_environment({{"AUTO_PROVISION_NODES", "perhaps"}});

  ASSERT_FALSE(config);
  EXPECT_THAT(config.error().message(), HasSubstr("AUTO_PROVISION_NODES: \"perhaps\" is neither"));
}

TEST(NodeSettings, WithoutAnImageProvisionNothing) {
  EXPECT_FALSE(has_node_provisioning(Config{}));
  Config config = {.features = {Feature::Airways}};
  config.nodes.installer_image = "installer:v1";
  EXPECT_FALSE(has_node_provisioning(config));
}

TEST(NodeSettings, TakeANumberOrAShareOfNodes) {
  EXPECT_EQ(options_of("nodeMaxUnavailable: 3").policy.max_unavailable.of(100), 3U);
  EXPECT_EQ(options_of("nodeMaxUnavailable: 10%").policy.max_unavailable.of(100), 10U);
  Config config;
  for (const std::string_view wrong : {"0", "0%", "101%", "-1", "many", "%", "1.5"}) {
    EXPECT_FALSE(apply_file(config, "nodeMaxUnavailable: '" + std::string(wrong) + "'")) << wrong;
  }
}

TEST(NodeSettings, KnowThatThePublishedInstallerCannotUndo) {
  EXPECT_TRUE(options_of("installerImage: r/hangar-node:v1").policy.may_uninstall);
  EXPECT_FALSE(
      options_of("installerImage: r:5000/kwasm/kwasm-node-installer:main").policy.may_uninstall);
  EXPECT_FALSE(options_of("{installerImage: i, nodeUninstallCommand: none}").policy.may_uninstall);
  const nodes::Options own = options_of(
      "{installerImage: r/kwasm-node-installer@sha256:ab, nodeUninstallCommand: sh /undo.sh}");
  EXPECT_TRUE(own.policy.may_uninstall);
  EXPECT_THAT(own.jobs.uninstall_command, ElementsAre("sh", "/undo.sh"));
}

TEST(NodeSettings, ProbeUnderTheFirstClassUnlessToldOtherwise) {
  EXPECT_THAT(options_of("{}").jobs.probe_image, IsEmpty());
  EXPECT_EQ(
      options_of("{nodeProbeImage: p, nodeRuntimeClasses: [a, b=c]}").jobs.probe_runtime_class,
      "a-probe");
  EXPECT_EQ(options_of("{nodeProbeImage: p, nodeRuntimeClasses: a, nodeProbeRuntimeClass: theirs}")
                .jobs.probe_runtime_class,
            "theirs");
}

TEST(NodeSettings, SayWhereRuntimesComeFrom) {
  const std::string sum(64, 'a');
  const std::string program(64, 'b');
  const std::string source =
      "crun-x@amd64=https://example.com/x.tgz#sha256:" + sum + "#program-sha256:" + program;
  const nodes::Options options =
      options_of("{installerImage: i, nodeFetchImage: f, nodeRuntimes: ['" + source +
                 "'], nodeImagePullSecrets: [a, b]}");

  EXPECT_THAT(options.jobs.runtimes, ElementsAre(source));
  EXPECT_THAT(options.jobs.checksums, ElementsAre("crun-x@amd64=sha256:" + program));
  EXPECT_EQ(options.jobs.fetch_image, "f");
  EXPECT_THAT(options.jobs.pull_secrets, ElementsAre("a", "b"));
  EXPECT_THAT(options.policy.version, testing::StartsWith("i+runtimes."));
  Config config;
  const Result<> wrong = apply_file(config, "nodeRuntimes: crun-x=https://example.com/x.tgz");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message(),
              HasSubstr("nodeRuntimes: crun-x=https://example.com/x.tgz: no URL with a checksum"));
}

TEST(NodeSettings, ThatCannotWorkTogetherAreRefused) {
  const std::vector<std::string> runtimes = {"crun=https://example.com/crun#sha256:aa"};

  EXPECT_TRUE(check({}));
  EXPECT_FALSE(check({.probe_image = "p"}));
  EXPECT_TRUE(check({.runtime_classes = {{"a", "a"}}, .probe_image = "p"}));
  EXPECT_FALSE(check({.installer_image = "i", .runtimes = runtimes}));
  EXPECT_TRUE(check({.installer_image = "i", .runtimes = runtimes, .fetch_image = "f"}));
  EXPECT_FALSE(check({.installer_image = "r/kwasm-node-installer:main",
                      .runtimes = runtimes,
                      .fetch_image = "f"}));
}

TEST(NodeSettings, ReadDurations) {
  const nodes::Options options = options_of(
      "{nodeJobTimeout: 90s, nodeRetryDelay: 5m, nodeReadyDelay: 0s, nodeJobRetries: 0}");

  EXPECT_EQ(options.jobs.timeout, 90s);
  EXPECT_EQ(options.policy.retry_min, 5min);
  EXPECT_EQ(options.policy.ready_min, 0s);
  EXPECT_EQ(options.jobs.retries, 0);
  Config config;
  EXPECT_FALSE(apply_file(config, "nodeJobTimeout: -5s"));
}

}  // namespace
}  // namespace hangar::host
