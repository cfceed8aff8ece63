#include "airways/airway.h"

#include "airways/flight.h"
#include "airways/limits.h"
#include "airways/terms.h"
#include "json/yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>

namespace hangar::airways {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::string_view kBackends = R"(
apiVersion: yoke.cd/v1alpha1
kind: Airway
metadata: {name: backends.examples.com, uid: u-1, generation: 4}
spec:
  wasmUrls: {flight: 'oci://registry/flights/backend:v1'}
  template:
    group: examples.com
    names: {kind: Backend, plural: backends, singular: backend}
    scope: Namespaced
    versions:
    - {name: v1, served: true, storage: false}
    - {name: v2, served: true, storage: true}
)";

json::Value backends() {
  return json::parse_yaml(kBackends).value();
}

// YAML reads a document that is only null as no document.
json::Value value_of(std::string_view yaml) {
  return yaml == "null" ? json::Value(nullptr) : json::parse_yaml(yaml).value();
}

json::Value with(json::Path path, std::string_view yaml) {
  json::Value airway = backends();
  json::set_at(airway, path, value_of(yaml));
  return airway;
}

TEST(Airway, HasYokesDefaults) {
  const Result<Airway> airway = parse_airway(backends());

  ASSERT_TRUE(airway) << airway.error().message();
  EXPECT_EQ(airway->name, "backends.examples.com");
  EXPECT_EQ(airway->uid, "u-1");
  EXPECT_EQ(airway->generation, 4);
  EXPECT_EQ(airway->terms.flight.reference, "oci://registry/flights/backend:v1");
  EXPECT_EQ(airway->terms.mode, Mode::Standard);
  EXPECT_FALSE(airway->terms.cluster_access);
  EXPECT_THAT(airway->terms.resource_access_matchers, IsEmpty());
  EXPECT_EQ(airway->terms.fix_drift_interval, seconds(0));
  EXPECT_EQ(airway->terms.timeout, seconds(10));
  EXPECT_EQ(airway->terms.history_max, 2U);
  EXPECT_EQ(airway->terms.memory_mib_max, 0U);
  EXPECT_THAT(airway->terms.object_path, IsEmpty());
  EXPECT_THAT(unsupported_of(*airway, {}), IsEmpty());
}

TEST(Airway, KnowsItsInstancesInTheStoredVersion) {
  const Result<Airway> airway = parse_airway(backends());

  ASSERT_TRUE(airway);
  EXPECT_EQ(airway->instances, (kube::Resource{.group = "examples.com",
                                               .version = "v2",
                                               .plural = "backends",
                                               .kind = "Backend",
                                               .namespaced = true}));
}

TEST(Airway, ReadsEveryPublishedField) {
  json::Value manifest = backends();
  const json::Value fields = json::parse_yaml(R"(
wasmUrls: {flight: f, flightChecksum: fc, converter: c, converterChecksum: cc}
objectPath: [spec, inner]
mode: subscription
clusterAccess: true
resourceAccessMatchers: [Secret, 'default/*']
fixDriftInterval: 1m30s
timeout: 500ms
insecure: true
skipAdmissionWebhook: true
historyCapSize: 7
prune: {crds: true, namespaces: true}
maxMemoryMib: 64
)")
                                 .value();
  for (const auto& [key, value] : fields.as_object()) {
    json::set_at(manifest, {"spec", key}, value);
  }

  const Result<Airway> airway = parse_airway(manifest);

  ASSERT_TRUE(airway) << airway.error().message();
  EXPECT_EQ(airway->terms.flight.sha256, "fc");
  EXPECT_EQ(airway->converter_url, "c");
  EXPECT_THAT(airway->terms.object_path, ElementsAre("spec", "inner"));
  EXPECT_EQ(airway->terms.mode, Mode::Subscription);
  EXPECT_TRUE(airway->terms.cluster_access);
  ASSERT_EQ(airway->terms.resource_access_matchers.size(), 2U);
  EXPECT_EQ(airway->terms.resource_access_matchers[1].text(), "default/*");
  EXPECT_EQ(airway->terms.fix_drift_interval, seconds(90));
  EXPECT_EQ(airway->terms.timeout, milliseconds(500));
  EXPECT_TRUE(airway->terms.flight.insecure);
  EXPECT_TRUE(airway->terms.skip_admission_webhook);
  EXPECT_EQ(airway->terms.history_max, 7U);
  EXPECT_EQ(prune_of(manifest), (PruneOptions{.crds = true, .namespaces = true}));
  EXPECT_EQ(airway->terms.memory_mib_max, 64U);
}

TEST(Airway, TakesNullForMissing) {
  const Result<Airway> airway = parse_airway(with({"spec", "objectPath"}, "null"));

  ASSERT_TRUE(airway) << airway.error().message();
  EXPECT_THAT(airway->terms.object_path, IsEmpty());
}

TEST(Airway, ReadsNumbersAsYokeDoes) {
  EXPECT_EQ(parse_airway(with({"spec", "historyCapSize"}, "0"))->terms.history_max, 2U);
  EXPECT_EQ(parse_airway(with({"spec", "historyCapSize"}, "-1"))->terms.history_max, std::nullopt);
  EXPECT_EQ(parse_airway(with({"spec", "timeout"}, "0s"))->terms.timeout, seconds(10));
  EXPECT_EQ(parse_airway(with({"spec", "timeout"}, "-1s"))->terms.timeout, std::nullopt);
  EXPECT_EQ(parse_airway(with({"spec", "maxMemoryMib"}, "100000"))->terms.memory_mib_max, 4096U);
  EXPECT_EQ(parse_airway(with({"spec", "fixDriftInterval"}, "-1m"))->terms.fix_drift_interval,
            seconds(0));
  EXPECT_EQ(parse_airway(with({"spec", "fixDriftInterval"}, "1ns"))->terms.fix_drift_interval,
            limits::kFixDriftIntervalMin);
}

TEST(Airway, ErrorsNameTheField) {
  struct Case {
    std::string_view name;
    json::Value manifest;
    std::string_view message;
  };
  const Case cases[] = {
      {"no spec", with({"spec"}, "null"), "spec: is required"},
      {"no URLs", with({"spec", "wasmUrls"}, "null"), "spec.wasmUrls: is required"},
      {"no flight", with({"spec", "wasmUrls"}, "{}"), "spec.wasmUrls.flight: is required"},
      {"URL is a number", with({"spec", "wasmUrls", "flight"}, "1"),
       "spec.wasmUrls.flight: must be a string"},
      {"mode", with({"spec", "mode"}, "eager"),
       "spec.mode: \"eager\" is not one of standard, static, dynamic, subscription"},
      {"flag", with({"spec", "clusterAccess"}, "'yes'"),
       "spec.clusterAccess: must be true or false"},
      {"path", with({"spec", "objectPath"}, "spec"), "spec.objectPath: must be a list of strings"},
      {"path of numbers", with({"spec", "objectPath"}, "[1]"),
       "spec.objectPath: must be a list of strings"},
      {"integer", with({"spec", "historyCapSize"}, "1.5"),
       "spec.historyCapSize: must be an integer"},
      {"negative memory", with({"spec", "maxMemoryMib"}, "-1"),
       "spec.maxMemoryMib: must not be negative"},
      {"prune", with({"spec", "prune"}, "true"), "spec.prune: must be an object"},
      {"prune flag", with({"spec", "prune"}, "{crds: 1}"),
       "spec.prune.crds: must be true or false"},
      {"no template", with({"spec", "template"}, "null"), "spec.template: is required"},
      {"template is text", with({"spec", "template"}, "hi"), "spec.template: must be an object"},
      {"no group", with({"spec", "template", "group"}, "null"), "spec.template.group: is required"},
      {"no names", with({"spec", "template", "names"}, "null"), "spec.template.names: is required"},
      {"no kind", with({"spec", "template", "names", "kind"}, "''"),
       "spec.template.names.kind: is required"},
      {"scope", with({"spec", "template", "scope"}, "Galaxy"),
       "spec.template.scope: \"Galaxy\" is neither Namespaced nor Cluster"},
      {"no versions", with({"spec", "template", "versions"}, "[]"),
       "spec.template.versions: at least one version is required"},
      {"versions are text", with({"spec", "template", "versions"}, "v1"),
       "spec.template.versions: at least one version is required"},
      {"a version is text", with({"spec", "template", "versions"}, "[v1]"),
       "spec.template.versions[0]: must be an object"},
      {"a version has no name", with({"spec", "template", "versions"}, "[{storage: true}]"),
       "spec.template.versions[0].name: is required"},
      {"no storage version", with({"spec", "template", "versions"}, "[{name: v1, served: true}]"),
       "spec.template.versions: exactly one version must have storage: true"},
      {"two storage versions",
       with({"spec", "template", "versions"},
            "[{name: v1, storage: true}, {name: v2, storage: true}]"),
       "spec.template.versions: both v1 and v2 have storage: true; exactly one may"},
      {"name", with({"metadata", "name"}, "backend"),
       "metadata.name: \"backend\" must be the template's <plural>.<group>: "
       "\"backends.examples.com\""},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const Result<Airway> airway = parse_airway(c.manifest);
    ASSERT_FALSE(airway);
    EXPECT_EQ(airway.error().kind(), ErrorKind::InvalidInput);
    EXPECT_EQ(airway.error().message(), c.message);
  }
}

TEST(Airway, ErrorsOfPartsNameTheFieldToo) {
  EXPECT_THAT(parse_airway(with({"spec", "timeout"}, "soon")).error().message(),
              HasSubstr("spec.timeout: "));
  EXPECT_THAT(
      parse_airway(with({"spec", "resourceAccessMatchers"}, "[Secret, 'a/']")).error().message(),
      HasSubstr("spec.resourceAccessMatchers[1]: "));
  EXPECT_FALSE(parse_airway("text"));
}

TEST(Airway, SaysWhatIsNotSupported) {
  json::Value manifest = with({"spec", "mode"}, "static");
  json::set_at(manifest, {"spec", "wasmUrls", "converter"}, json::Value("oci://registry/c:v1"));

  const Result<Airway> airway = parse_airway(manifest);

  ASSERT_TRUE(airway) << airway.error().message();
  EXPECT_THAT(unsupported_of(*airway, {}),
              ElementsAre(HasSubstr("spec.mode static"), HasSubstr("spec.wasmUrls.converter")));
  EXPECT_THAT(unsupported_of(*airway, {.has_webhooks = true}), ::testing::IsEmpty());
}

TEST(Airway, SaysWhichOverridesOfAnInstanceAreIgnored) {
  EXPECT_THAT(
      unsupported_of_instance(json::parse_yaml("{metadata: {annotations: {x: y}}}").value()),
      IsEmpty());
  EXPECT_THAT(
      unsupported_of_instance(json::parse_yaml("{metadata: {annotations: "
                                               "{overrides.yoke.cd/flight: f, "
                                               "overrides.yoke.cd/mode: dynamic}}}")
                                  .value()),
      ElementsAre(HasSubstr("overrides.yoke.cd/flight"), HasSubstr("overrides.yoke.cd/mode")));
}

}  // namespace
}  // namespace hangar::airways
