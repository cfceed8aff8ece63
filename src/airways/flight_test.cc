#include "airways/flight.h"

#include "airways/acting.h"
#include "airways/limits.h"
#include "airways/terms.h"
#include "base/result.h"
#include "json/value.h"
#include "json/yaml.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::airways {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

json::Value flight(std::string_view spec, std::string_view annotations = "{}") {
  json::Value object = json::parse_yaml(R"(
apiVersion: yoke.cd/v1alpha1
kind: Flight
metadata: {name: web, namespace: team, uid: u-1, generation: 3}
)")
                           .value();
  json::set_at(object, {"spec"}, json::parse_yaml(spec).value());
  json::set_at(object, {"metadata", "annotations"}, json::parse_yaml(annotations).value());
  return object;
}

json::Value acting_as(std::string_view account) {
  json::Value object = flight("{wasmUrl: x}");
  json::set_at(object, {"metadata", "annotations", kServiceAccountAnnotation},
               json::String(account));
  return object;
}

TEST(Flight, FollowsLookupsInTheModesThatSaySo) {
  const std::pair<std::string_view, LookupWatch> modes[] = {{"standard", LookupWatch::None},
                                                            {"static", LookupWatch::None},
                                                            {"dynamic", LookupWatch::Changes},
                                                            {"subscription", LookupWatch::Changes}};
  for (const auto& [mode, watch] : modes) {
    const Result<Terms> terms = parse_flight(flight(fmt::format("{{wasmUrl: x, mode: {}}}", mode)));
    ASSERT_TRUE(terms) << terms.error().message();
    EXPECT_EQ(name_of(terms->mode), mode);
    EXPECT_EQ(terms->lookup_watch, watch) << mode;
    EXPECT_EQ(terms->tracked_interval_min, seconds(1));
  }

  const Result<Terms> wrong = parse_flight(flight("{wasmUrl: x, mode: eager}"));
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message(), HasSubstr("spec.mode: \"eager\" is not one of"));
}

TEST(Flight, NeedsWebhooksForModeStaticOnly) {
  for (const Mode mode : {Mode::Standard, Mode::Dynamic, Mode::Subscription}) {
    EXPECT_EQ(unsupported_mode(mode, false), std::nullopt);
  }
  EXPECT_EQ(unsupported_mode(Mode::Static, true), std::nullopt);
  EXPECT_THAT(unsupported_mode(Mode::Static, false), testing::Optional(HasSubstr("webhooks")));
}

TEST(Flight, HasYokesDefaults) {
  const Result<Terms> terms = parse_flight(flight("{wasmUrl: 'oci://registry/web:v1'}"));

  ASSERT_TRUE(terms) << terms.error().message();
  EXPECT_EQ(terms->flight, (modules::Source{.reference = "oci://registry/web:v1"}));
  EXPECT_THAT(terms->args, IsEmpty());
  EXPECT_EQ(terms->input, "") << "never the Flight itself";
  EXPECT_EQ(terms->mode, Mode::Standard);
  EXPECT_FALSE(terms->cluster_access);
  EXPECT_EQ(terms->lookup_watch, LookupWatch::None);
  EXPECT_EQ(terms->fix_drift_interval, seconds(0));
  EXPECT_EQ(terms->timeout, seconds(10));
  EXPECT_EQ(terms->history_max, 2U);
  EXPECT_EQ(terms->memory_mib_max, 0U);
}

TEST(Flight, ReadsEveryField) {
  const json::Value manifest = flight(
      "{wasmUrl: u, checksum: c, args: [--a, b], fixDriftInterval: 90s, clusterAccess: "
      "true, resourceAccessMatchers: [Secret], insecure: true, skipAdmissionWebhook: true, "
      "historyCapSize: 5, prune: {crds: true, namespaces: true}, maxMemoryMib: 64, timeout: "
      "30s}");

  const Result<Terms> terms = parse_flight(manifest);

  ASSERT_TRUE(terms) << terms.error().message();
  EXPECT_EQ(terms->flight, (modules::Source{.reference = "u", .sha256 = "c", .insecure = true}));
  EXPECT_THAT(terms->args, ElementsAre("--a", "b"));
  EXPECT_EQ(terms->fix_drift_interval, seconds(90));
  EXPECT_TRUE(terms->cluster_access);
  ASSERT_EQ(terms->resource_access_matchers.size(), 1U);
  EXPECT_TRUE(terms->skip_admission_webhook);
  EXPECT_EQ(terms->history_max, 5U);
  EXPECT_EQ(prune_of(manifest), (PruneOptions{.crds = true, .namespaces = true}));
  EXPECT_EQ(terms->memory_mib_max, 64U);
  EXPECT_EQ(terms->timeout, seconds(30));
}

TEST(Flight, IsGivenItsInputElseItsInputObjectElseNothing) {
  const json::Value both = flight("{wasmUrl: u, input: 'no: json', inputObject: {a: 1}}");
  const json::Value object = flight("{wasmUrl: u, inputObject: {a: 1}}");
  const json::Value empty = flight("{wasmUrl: u, inputObject: {}}");
  const json::Value none = flight("{wasmUrl: u}");

  EXPECT_EQ(input_of(parse_flight(both).value(), both).value(), "no: json");
  EXPECT_EQ(input_of(parse_flight(object).value(), object).value(), R"({"a":1})");
  EXPECT_EQ(input_of(parse_flight(empty).value(), empty).value(), "{}");
  EXPECT_EQ(input_of(parse_flight(none).value(), none).value(), "");
}

TEST(Flight, HasAnEndHoweverLongItsAuthorWouldWait) {
  const auto timeout = [](std::string_view text) {
    return parse_flight(flight("{wasmUrl: u, timeout: " + std::string(text) + "}"))->timeout;
  };
  EXPECT_EQ(timeout("24h"), limits::kFlightTimeMax);
  EXPECT_EQ(timeout("-1s"), limits::kFlightTimeMax);
  EXPECT_EQ(timeout("60s"), limits::kFlightTimeMax);
  EXPECT_EQ(timeout("59s"), seconds(59));
}

TEST(Flight, IsEvaluatedOnceASecondAtMostWithoutAChange) {
  const auto interval = [](std::string_view text) {
    return parse_flight(flight("{wasmUrl: u, fixDriftInterval: " + std::string(text) + "}"))
        ->fix_drift_interval;
  };
  EXPECT_EQ(interval("1ns"), seconds(1));
  EXPECT_EQ(interval("2s"), seconds(2));
  EXPECT_EQ(interval("0s"), seconds(0));
}

TEST(Flight, ErrorsNameTheField) {
  const auto message = [](std::string_view spec) {
    return parse_flight(flight(spec)).error().message();
  };
  EXPECT_EQ(message("{}"), "spec.wasmUrl: is required");
  EXPECT_EQ(message("{wasmUrl: 1}"), "spec.wasmUrl: must be a string");
  EXPECT_EQ(message("{wasmUrl: u, args: [1]}"), "spec.args: must be a list of strings");
  EXPECT_EQ(message("{wasmUrl: u, input: {}}"), "spec.input: must be a string");
  EXPECT_EQ(message("{wasmUrl: u, inputObject: text}"), "spec.inputObject: must be an object");
  EXPECT_EQ(message("{wasmUrl: u, maxMemoryMib: -1}"), "spec.maxMemoryMib: must not be negative");
  EXPECT_EQ(message("{wasmUrl: u, prune: {namespaces: 1}}"),
            "spec.prune.namespaces: must be true or false");
  EXPECT_THAT(message("{wasmUrl: u, resourceAccessMatchers: ['a/']}"),
              HasSubstr("spec.resourceAccessMatchers[0]: "));
  EXPECT_EQ(parse_flight(json::Object()).error().message(), "spec: is required");
}

TEST(Flight, SaysWhatMayBeDeletedEvenIfTheRestIsWrong) {
  EXPECT_EQ(prune_of(flight("{prune: {crds: true}}")), (PruneOptions{.crds = true}));
  EXPECT_EQ(prune_of(flight("{prune: yes}")), PruneOptions{});
  EXPECT_EQ(prune_of(json::Object()), PruneOptions{});
}

TEST(AccountOfAFlight, IsOfItsOwnNamespaceAndNoOther) {
  EXPECT_EQ(account_of(flight("{wasmUrl: u}")).value(),
            (Account{.namespace_ = "team", .name = "default"}));
  EXPECT_EQ(account_of(flight("{wasmUrl: u, clusterAccess: true}")).value(),
            (Account{.namespace_ = "team", .name = "default"}))
      << "whatever it may look up";
  EXPECT_EQ(account_of(acting_as("deployer")).value(),
            (Account{.namespace_ = "team", .name = "deployer"}));
  EXPECT_EQ(account_of(acting_as("team/deployer")).value(),
            (Account{.namespace_ = "team", .name = "deployer"}));
  for (const std::string_view other :
       {"kube-system/deployer", "default/default", "Team/deployer"}) {
    EXPECT_EQ(account_of(acting_as(other)).error().kind(), ErrorKind::InvalidInput) << other;
  }
  EXPECT_THAT(account_of(acting_as("other/deployer")).error().message(),
              HasSubstr("a ServiceAccount of its own namespace team"));
}

TEST(AccountOfAFlight, IsNeverTheHostWhateverIsMissing) {
  for (const std::string_view account : {"", "/", "a/", "/a", "team/"}) {
    const Result<Account> found = account_of(acting_as(account));
    if (found) EXPECT_EQ(*found, (Account{.namespace_ = "team", .name = "default"})) << account;
  }
  // The API server gives every Flight a namespace.
  json::Value nowhere = flight("{wasmUrl: u}");
  json::erase_at(nowhere, {"metadata", "namespace"});
  EXPECT_FALSE(account_of(nowhere));
}

json::Value cluster_flight(std::string_view account) {
  json::Value object = acting_as(account);
  json::set_at(object, {"kind"}, json::String(kClusterFlightKind));
  json::erase_at(object, {"metadata", "namespace"});
  return object;
}

TEST(ActorOfAClusterFlight, IsTheHostOnlyWhereThatIsAllowed) {
  EXPECT_EQ(cluster_actor_of(cluster_flight(""), AsHost::Allowed).value(), Actor::host());
  const Result<Actor> refused = cluster_actor_of(cluster_flight(""), AsHost::Refused);

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::InvalidInput);
  EXPECT_THAT(refused.error().message(), HasSubstr("NAMESPACE/NAME"));
  EXPECT_THAT(refused.error().message(), HasSubstr("--cluster-flights-as-host"));
}

TEST(ActorOfAClusterFlight, IsTheServiceAccountThatItNamesWithItsNamespace) {
  for (const AsHost as_host : {AsHost::Refused, AsHost::Allowed}) {
    EXPECT_EQ(cluster_actor_of(cluster_flight("platform/deployer"), as_host).value(),
              Actor::account({.namespace_ = "platform", .name = "deployer"}));
    for (const std::string_view wrong :
         {"deployer", "/deployer", "platform/", "Platform/deployer"}) {
      EXPECT_EQ(cluster_actor_of(cluster_flight(wrong), as_host).error().kind(),
                ErrorKind::InvalidInput)
          << wrong << " is not the host";
    }
  }
}

TEST(IsFlight, KnowsBothKinds) {
  EXPECT_TRUE(is_flight(flight_resource().gvk().group_kind()));
  EXPECT_TRUE(is_flight(cluster_flight_resource().gvk().group_kind()));
  EXPECT_FALSE(is_flight({.group = "examples.com", .kind = "Flight"}));
  EXPECT_FALSE(is_flight({.group = "yoke.cd", .kind = "Airway"}));
}

}  // namespace
}  // namespace hangar::airways
