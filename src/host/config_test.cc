#include "host/config.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/result.h"
#include "domains/guest_processes.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::host {
namespace {

TEST(Config, NamesASettingAlikeInEveryPlace) {
  const Setting setting{.name = "module-cache-dir", .help = "", .set = nullptr};

  EXPECT_EQ(setting.variable(), "HANGAR_MODULE_CACHE_DIR");
  EXPECT_EQ(setting.key(), "moduleCacheDir");
}

TEST(Config, SettingsSayOfWhichTypeTheirValuesAre) {
  for (const Setting& setting : settings())
    EXPECT_EQ(setting.type.empty(), setting.is_switch) << setting.name;
}

TEST(Config, SettingsAreUniqueAndExplained) {
  std::set<std::string_view> names;
  for (const Setting& setting : settings()) {
    EXPECT_TRUE(names.insert(setting.name).second) << setting.name;
    EXPECT_FALSE(setting.help.empty()) << setting.name;
  }
}

TEST(Config, ReadsAFile) {
  Config config;

  const Result<> applied = apply_file(config,
                                      "logLevel: debug\nleaderElect: true\nguestThreads: 3\n"
                                      "moduleAllowList: [\"oci://a/*\", \"https://b/*\"]\n");

  ASSERT_TRUE(applied.has_value()) << applied.error().message();
  EXPECT_EQ(config.log_level, LogLevel::Debug);
  EXPECT_TRUE(config.leader_elect);
  EXPECT_EQ(config.guest_threads, 3);
  EXPECT_EQ(config.module_allow_list, (std::vector<std::string>{"oci://a/*", "https://b/*"}));
}

TEST(Config, LetsOperatorsReachPublicAddressesAndThoseItNames) {
  Config config;
  EXPECT_TRUE(config.outbound_addresses.allows("1.1.1.1"));
  EXPECT_FALSE(config.outbound_addresses.allows("10.96.0.1"));
  EXPECT_FALSE(config.outbound_addresses.allows("127.0.0.1"));

  const Result<> applied = apply_file(config, "outboundAddressAllowList: [10.96.0.0/12]\n");

  ASSERT_TRUE(applied.has_value()) << applied.error().message();
  EXPECT_TRUE(config.outbound_addresses.allows("10.96.0.1"));
  EXPECT_FALSE(config.module_addresses.allows("10.96.0.1"));
}

TEST(Config, LetsTenantsModulesComeFromPublicAddressesAndThoseItNames) {
  Config config;
  EXPECT_TRUE(config.module_addresses.allows("1.1.1.1"));
  EXPECT_FALSE(config.module_addresses.allows("10.96.0.1"));

  const Result<> applied =
      apply_file(config, "moduleAddressAllowList: [10.96.0.0/12, 192.168.7.7]\n");

  ASSERT_TRUE(applied.has_value()) << applied.error().message();
  EXPECT_TRUE(config.module_addresses.allows("10.96.0.1"));
  EXPECT_TRUE(config.module_addresses.allows("192.168.7.7"));
  EXPECT_FALSE(config.module_addresses.allows("192.168.7.8"));
}

TEST(Config, SaysWhichSettingIsWrongAndWhatWouldBeRight) {
  struct Row {
    std::string_view text;
    std::string_view message;
  };
  for (const Row& row :
       {Row{"logLevl: debug", "unknown setting \"logLevl\""},
        Row{"logLevel: loud", "logLevel: \"loud\" is not one of debug, info, warning, error"},
        Row{"guestThreads: -1", "guestThreads: \"-1\" is not a whole number"},
        Row{"leaderElect: maybe", "leaderElect: \"maybe\" is neither true nor false"},
        Row{"features: [airways, pigs]",
            "features: \"pigs\" is not one of airways, flights, operators, workflows, nodes"},
        Row{"moduleAddressAllowList: [10.0.0.0/8, intranet]",
            "moduleAddressAllowList: \"intranet\" is not a network (10.96.0.0/12), an address, or "
            "\"private\""},
        Row{"context: {a: b}", "context: must be a scalar or a list of scalars"},
        Row{"[1]", "must be a mapping of settings, such as logLevel: debug"}}) {
    Config config;

    const Result<> applied = apply_file(config, row.text);

    ASSERT_FALSE(applied.has_value()) << row.text;
    EXPECT_EQ(applied.error().kind(), ErrorKind::InvalidInput);
    EXPECT_EQ(applied.error().message(), row.message);
  }
}

TEST(Config, GivesGuestsAProcessUnlessASettingSaysOtherwise) {
  const auto isolation = [](auto resolved_by, std::string_view settings) {
    Config config{.module_cache_dir = "/tmp", .compiler = "/bin/true"};
    config.guest_program = "/bin/true";
    EXPECT_TRUE(apply_file(config, settings));
    const Result<Config> resolved = resolved_by(std::move(config));
    EXPECT_TRUE(resolved) << resolved.error().message();
    return resolved->guest_isolation;
  };
  constexpr std::string_view kNothing = "logLevel: info\n";

  EXPECT_EQ(isolation(resolve, kNothing), domains::Isolation::None);
  EXPECT_EQ(isolation(resolve_for_guests, kNothing), domains::Isolation::Namespace);
  for (const auto& [text, chosen] :
       {std::pair("guestIsolation: none\n", domains::Isolation::None),
        std::pair("guestIsolation: shared\n", domains::Isolation::Shared)}) {
    EXPECT_EQ(isolation(resolve, text), chosen);
    EXPECT_EQ(isolation(resolve_for_guests, text), chosen);
  }
}

TEST(Config, TakesCodeOfBuildersOnlyWithTheirKeys) {
  for (const Config& config : {Config{.module_cache_dir = "/tmp", .native_code_dir = "/code"},
                               Config{.module_cache_dir = "/tmp", .builder_keys = "/keys"}}) {
    const Result<Config> resolved = resolve(config);
    ASSERT_FALSE(resolved);
    EXPECT_EQ(resolved.error().message(),
              "native-code-dir and builder-keys belong together: set both, or neither");
  }
}

TEST(Config, RefusesALeaseThatTwoCouldHold) {
  const auto resolved = [](std::string_view lease, std::string_view renew, std::string_view retry) {
    Config config;
    config.compiler = "/bin/true";
    const Result<> applied = apply_file(
        config, fmt::format("leaderElectLeaseDuration: {}\nleaderElectRenewDeadline: {}\n"
                            "leaderElectRetryPeriod: {}\n",
                            lease, renew, retry));
    EXPECT_TRUE(applied);
    return resolve(std::move(config));
  };

  EXPECT_TRUE(resolved("15s", "10s", "2s"));
  EXPECT_TRUE(resolved("3s", "2s", "500ms"));
  EXPECT_FALSE(resolved("10s", "10s", "2s"));
  EXPECT_FALSE(resolved("15s", "3s", "2s"));
  EXPECT_FALSE(resolved("900ms", "800ms", "100ms"));
  EXPECT_FALSE(resolved("15s", "10s", "50ms"));
}

TEST(Config, NeedsRoomForModules) {
  const auto resolved = [](std::string_view size) {
    Config config{.module_cache_dir = "/tmp", .compiler = "/bin/true"};
    EXPECT_TRUE(apply_file(config, fmt::format("moduleCacheSize: {}\n", size)));
    return resolve(std::move(config));
  };

  const Result<Config> small = resolved("1Gi");
  ASSERT_TRUE(small);
  EXPECT_EQ(small->recorder_bytes, 1024 * limits::kMiB / 20) << "the share of records";
  const Result<Config> refused = resolved("31Mi");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::InvalidInput);
  EXPECT_EQ(refused.error().message(), "module-cache-size must be at least 32 MiB");
}

TEST(Config, NeedsAPlaceForAReconcile) {
  const auto resolved = [](std::string_view count) {
    Config config{.module_cache_dir = "/tmp", .compiler = "/bin/true"};
    EXPECT_TRUE(apply_file(config, fmt::format("maxConcurrentReconciles: {}\n", count)));
    return resolve(std::move(config));
  };

  EXPECT_EQ(resolved("1").value().max_concurrent_reconciles, 1U);
  const Result<Config> refused = resolved("0");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::InvalidInput);
  EXPECT_THAT(refused.error().message(), testing::HasSubstr("max-concurrent-reconciles"));
}

TEST(Config, LimitsRequestsOnlyIfToldTo) {
  Config config;
  EXPECT_EQ(client_options(config).requests_per_second, 0);
  ASSERT_TRUE(apply_file(config, "kubeApiQps: 5").has_value());
  EXPECT_EQ(client_options(config).requests_per_second, 5);
  EXPECT_EQ(client_options(config).burst, 10U);
  ASSERT_TRUE(apply_file(config, "kubeApiBurst: 7").has_value());
  EXPECT_EQ(client_options(config).burst, 7U);
}

TEST(Config, HasEveryFeatureUnlessToldWhich) {
  Config config;
  EXPECT_TRUE(config.has(Feature::Airways));
  EXPECT_TRUE(config.has(Feature::Operators));

  ASSERT_TRUE(apply_file(config, "features: operators").has_value());

  EXPECT_FALSE(config.has(Feature::Airways));
  EXPECT_TRUE(config.has(Feature::Operators));
}

TEST(Config, TheEnvironmentIsReadByName) {
  Config config;

  const Result<> applied = apply_environment(config, [](const char* name) -> const char* {
    return std::string_view(name) == "HANGAR_LOG_FORMAT" ? "console" : nullptr;
  });

  ASSERT_TRUE(applied.has_value());
  EXPECT_EQ(config.log_format, LogFormat::Console);
}

}  // namespace
}  // namespace hangar::host
