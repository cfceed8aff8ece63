#include "airways/crd_template.h"

#include "admission/webhooks.h"
#include "json/value.h"
#include "json/yaml.h"
#include "kube/object.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace hangar::airways {
namespace {

using testing::HasSubstr;

json::Value yaml(std::string_view text) {
  return json::parse_yaml(text).value();
}

// An Airway with one version that has these members.
Airway airway_with_version(std::string_view members) {
  const std::string manifest =
      "metadata: {name: backends.examples.com, uid: u-1}\n"
      "spec:\n"
      "  wasmUrls: {flight: f}\n"
      "  template:\n"
      "    group: examples.com\n"
      "    names: {kind: Backend, plural: backends}\n"
      "    scope: Namespaced\n"
      "    versions: [{name: v1, served: true, storage: true" +
      std::string(members) + "}]\n";
  return parse_airway(yaml(manifest)).value();
}

const json::Value& first_version(const json::Value& crd) {
  return json::array_at(crd, {"spec", "versions"})->front();
}

TEST(CrdOf, IsNamedAfterTheAirwayAndOwnedByIt) {
  const Result<json::Value> crd = crd_of(airway_with_version(""));

  ASSERT_TRUE(crd) << crd.error().message();
  EXPECT_EQ(json::string_at(*crd, {"apiVersion"}), "apiextensions.k8s.io/v1");
  EXPECT_EQ(json::string_at(*crd, {"kind"}), "CustomResourceDefinition");
  EXPECT_EQ(
      *json::find(*crd, {"metadata"}),
      yaml("{name: backends.examples.com, ownerReferences: [{apiVersion: yoke.cd/v1alpha1, "
           "kind: Airway, name: backends.examples.com, uid: u-1, blockOwnerDeletion: true}]}"));
}

TEST(CrdOf, GivesAVersionWithoutSchemaOneWithConditions) {
  const Result<json::Value> crd = crd_of(airway_with_version(""));

  ASSERT_TRUE(crd) << crd.error().message();
  EXPECT_EQ(first_version(*crd), yaml(R"(
name: v1
served: true
storage: true
subresources: {status: {}}
schema:
  openAPIV3Schema:
    type: object
    properties:
      status:
        type: object
        properties:
          conditions:
            type: array
            x-kubernetes-list-type: map
            x-kubernetes-list-map-keys: [type]
            items:
              type: object
              required: [type, status, lastTransitionTime, reason, message]
              properties:
                lastTransitionTime: {type: string}
                message: {type: string}
                observedGeneration: {type: integer}
                reason: {type: string}
                status: {type: string}
                type: {type: string}
)"));
}

TEST(CrdOf, KeepsTheTemplatesOwnFieldsAndSubresources) {
  const Result<json::Value> crd = crd_of(airway_with_version(
      ", deprecated: true, subresources: {scale: {specReplicasPath: .spec.replicas, "
      "statusReplicasPath: .status.replicas}}, schema: {openAPIV3Schema: {type: object, "
      "properties: {spec: {type: object}, status: {type: object, properties: {msg: {type: "
      "string}}}}}}"));

  ASSERT_TRUE(crd) << crd.error().message();
  const json::Value& version = first_version(*crd);
  EXPECT_TRUE(json::bool_at(version, {"deprecated"}));
  EXPECT_NE(json::find(version, {"subresources", "scale"}), nullptr);
  EXPECT_NE(json::find(version, {"subresources", "status"}), nullptr);
  const json::Value* status =
      json::find(version, {"schema", "openAPIV3Schema", "properties", "status"});
  ASSERT_NE(status, nullptr);
  EXPECT_EQ(json::string_at(*status, {"properties", "msg", "type"}), "string");
  EXPECT_EQ(json::string_at(*status, {"properties", "conditions", "type"}), "array");
}

TEST(CrdOf, GivesAStatusWithoutPropertiesItsConditions) {
  const Result<json::Value> crd = crd_of(airway_with_version(
      ", schema: {openAPIV3Schema: {type: object, properties: {status: {type: object}}}}"));

  ASSERT_TRUE(crd) << crd.error().message();
  EXPECT_NE(json::find(first_version(*crd), {"schema", "openAPIV3Schema", "properties", "status",
                                             "properties", "conditions"}),
            nullptr);
}

TEST(CrdOf, DropsStatusFromTheRequiredProperties) {
  const Result<json::Value> both = crd_of(airway_with_version(
      ", schema: {openAPIV3Schema: {type: object, required: [status, spec], properties: {spec: "
      "{type: object}, status: {type: object}}}}"));
  const Result<json::Value> only = crd_of(airway_with_version(
      ", schema: {openAPIV3Schema: {type: object, required: [status], properties: {status: {type: "
      "object}}}}"));

  ASSERT_TRUE(both);
  ASSERT_TRUE(only);
  EXPECT_EQ(*json::find(first_version(*both), {"schema", "openAPIV3Schema", "required"}),
            yaml("[spec]"));
  EXPECT_EQ(json::find(first_version(*only), {"schema", "openAPIV3Schema", "required"}), nullptr);
}

TEST(CrdOf, TreatsEveryVersion) {
  Airway airway = airway_with_version("");
  json::Value* versions = json::find(airway.template_, {"versions"});
  versions->as_array().push_back(yaml("{name: v2, served: true, storage: false}"));

  const Result<json::Value> crd = crd_of(airway);

  ASSERT_TRUE(crd) << crd.error().message();
  for (const json::Value& version : *json::array_at(*crd, {"spec", "versions"})) {
    EXPECT_NE(json::find(version, {"subresources", "status"}), nullptr);
  }
}

TEST(CrdOf, AcceptsConditionsWithMoreThanIsNeeded) {
  const Result<json::Value> crd = crd_of(airway_with_version(R"(, schema: {openAPIV3Schema: {
    type: object, properties: {status: {type: object, properties: {conditions: {type: array, items: {
    type: object, required: [type, status, lastTransitionTime, reason, message, extra],
    properties: {type: {type: string, maxLength: 316}, status: {type: string}, extra: {type: integer},
    lastTransitionTime: {type: string, format: date-time}, reason: {type: string},
    message: {type: string}, observedGeneration: {type: integer}}}}}}}}})"));

  ASSERT_TRUE(crd) << crd.error().message();
}

TEST(CrdOf, RefusesAStatusThatCannotHoldConditions) {
  struct Case {
    std::string_view name;
    std::string_view status;
    std::string_view message;
  };
  const Case cases[] = {
      {"text", "{type: string}", "status must be an object but got type: \"string\""},
      {"no type", "{}", "status must be an object but got type: \"\""},
      {"no schema", "hello", "status: must be an object"},
      {"conditions are text", "{type: object, properties: {conditions: {type: string}}}",
       "conditions does not have expected schema: conditions: expected type \"array\" but got "
       "\"string\""},
      {"no items", "{type: object, properties: {conditions: {type: array}}}",
       "conditions: items is missing"},
      {"items are text",
       "{type: object, properties: {conditions: {type: array, items: {type: string}}}}",
       "conditions.items: expected type \"object\" but got \"string\""},
      {"not required",
       "{type: object, properties: {conditions: {type: array, items: {type: object, required: "
       "[type]}}}}",
       "conditions.items: \"status\" is required but was not"},
      {"property missing",
       "{type: object, properties: {conditions: {type: array, items: {type: object, required: "
       "[type, status, lastTransitionTime, reason, message]}}}}",
       "conditions.items: property \"lastTransitionTime\" is missing"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const Result<json::Value> crd = crd_of(airway_with_version(
        ", schema: {openAPIV3Schema: {type: object, properties: {status: " + std::string(c.status) +
        "}}}"));
    ASSERT_FALSE(crd);
    EXPECT_EQ(crd.error().kind(), ErrorKind::InvalidInput);
    EXPECT_THAT(crd.error().message(), HasSubstr(c.message));
    EXPECT_THAT(crd.error().message(), HasSubstr("spec.template.versions[0]"));
  }
}

TEST(CrdOf, RefusesMembersThatAreNoObjects) {
  for (const std::string_view members :
       {", subresources: 1", ", schema: []", ", schema: {openAPIV3Schema: x}",
        ", schema: {openAPIV3Schema: {type: object, properties: []}}"}) {
    SCOPED_TRACE(members);
    const Result<json::Value> crd = crd_of(airway_with_version(members));
    ASSERT_FALSE(crd);
    EXPECT_THAT(crd.error().message(), HasSubstr("must be an object"));
  }
}

TEST(CrdOf, ConvertsNothingUnlessTheTemplateSaysSo) {
  Airway airway = airway_with_version("");
  EXPECT_EQ(json::string_at(*crd_of(airway), {"spec", "conversion", "strategy"}), "None");

  json::set_at(airway.template_, {"conversion"}, yaml("{strategy: Webhook, webhook: {}}"));
  EXPECT_EQ(json::string_at(*crd_of(airway), {"spec", "conversion", "strategy"}), "Webhook");
}

TEST(CrdOf, HasInstancesConvertedByTheConverterWhateverTheTemplateSays) {
  Airway airway = airway_with_version("");
  json::set_at(airway.template_, {"conversion"}, yaml("{strategy: Webhook, webhook: {a: b}}"));

  const Result<json::Value> crd =
      crd_of(airway, admission::Address{.client_config = yaml("{url: 'https://h/p', caBundle: b}"),
                                        .annotations = {{"inject", "ns/name"}}});

  ASSERT_TRUE(crd) << crd.error().message();
  EXPECT_EQ(*json::find(*crd, {"spec", "conversion"}),
            yaml("{strategy: Webhook, webhook: {clientConfig: {url: 'https://h/p', caBundle: b}, "
                 "conversionReviewVersions: [v1]}}"));
  EXPECT_EQ(kube::annotation_of(*crd, "inject"), "ns/name");
}

TEST(MayTakeOverCrd, DependsOnWhoOwnsIt) {
  const Airway airway = airway_with_version("");
  const auto owned_by = [](std::string_view kind, std::string_view name, std::string_view uid) {
    return yaml(
        "{metadata: {name: backends.examples.com, ownerReferences: [{apiVersion: "
        "yoke.cd/v1alpha1, kind: " +
        std::string(kind) + ", name: " + std::string(name) + ", uid: " + std::string(uid) + "}]}}");
  };

  EXPECT_TRUE(may_take_over_crd(owned_by("Airway", "backends.examples.com", "u-1"), airway));
  EXPECT_TRUE(may_take_over_crd(yaml("{metadata: {name: backends.examples.com}}"), airway));

  const Result<> earlier =
      may_take_over_crd(owned_by("Airway", "backends.examples.com", "u-0"), airway);
  ASSERT_FALSE(earlier);
  EXPECT_EQ(earlier.error().kind(), ErrorKind::Conflict);

  const Result<> other = may_take_over_crd(owned_by("Airway", "other.examples.com", "u-2"), airway);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().kind(), ErrorKind::InvalidInput);
  EXPECT_THAT(other.error().message(), HasSubstr("other.examples.com"));

  const Result<> release =
      may_take_over_crd(yaml("{metadata: {annotations: {instance.atc.yoke.cd/release: r, "
                             "instance.atc.yoke.cd/namespace: ns}}}"),
                        airway);
  ASSERT_FALSE(release);
  EXPECT_EQ(release.error().message(),
            "expected release \"\" but resource is already owned by \"ns/r\"");
}

}  // namespace
}  // namespace hangar::airways
