#include "commands/drift.h"

#include "json/yaml.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

namespace hangar::commands {
namespace {

json::Value yaml(std::string_view text) {
  return json::parse_yaml(text).value();
}

TEST(WithoutAdditions, KeepsWhatIsWantedAndDropsTheRest) {
  EXPECT_EQ(without_additions(
                yaml("{a: 1, b: {c: 2, gone: 3}, l: [{x: 1}, {y: 2}], s: text}"),
                yaml("{a: 9, b: {c: 2, added: 4}, l: [{x: 1, d: 0}, {z: 1}, {w: 1}], s: 5, n: 1}")),
            yaml("{a: 9, b: {c: 2}, l: [{x: 1}, {}, {w: 1}], s: 5}"));
}

TEST(WithoutAdditions, LeavesWhatIsOfAnotherKind) {
  EXPECT_EQ(without_additions(yaml("{a: {}, b: [], c: 1}"), yaml("{a: [1], b: {k: 1}, c: {k: 1}}")),
            yaml("{a: [1], b: {k: 1}, c: {k: 1}}"));
}

TEST(WithoutBookkeeping, DropsWhatTheServerKeepsForItself) {
  EXPECT_EQ(without_bookkeeping(yaml("{metadata: {name: a, uid: u, generation: 1, resourceVersion: "
                                     "'2', managedFields: [], creationTimestamp: now}, status: "
                                     "{}, spec: {}}")),
            yaml("{metadata: {name: a, uid: u}, spec: {}}"));
}

constexpr std::string_view kPrinted =
    "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: '1'}}";

TEST(CompareResource, IgnoresAdditionsUnlessAllFieldsCount) {
  const json::Value live = yaml(
      "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, uid: u}, data: {a: '1', b: '2'}}");

  EXPECT_FALSE(compare_resource(yaml(kPrinted), live, ComparedFields::Set).differs());
  EXPECT_TRUE(compare_resource(yaml(kPrinted), live, ComparedFields::All).differs());
}

TEST(CompareResource, DiffersFromAnObjectThatDoesNotExist) {
  const ComparedResource compared =
      compare_resource(yaml(kPrinted), std::nullopt, ComparedFields::Set);

  EXPECT_TRUE(compared.differs());
  EXPECT_FALSE(compared.actual);
}

ComparedResource withheld(std::string_view expected, std::string_view actual) {
  ComparedResource compared{.expected = yaml(expected), .actual = yaml(actual)};
  withhold_secret_values(compared);
  return compared;
}

TEST(WithholdSecretValues, TellsOnlyWhichKeysDiffer) {
  const ComparedResource compared = withheld(
      "{apiVersion: v1, kind: Secret, type: Opaque, metadata: {name: a}, data: {same: YQ==, other: "
      "YQ==, gone: YQ==}, stringData: {a: word}}",
      "{apiVersion: v1, kind: Secret, type: Opaque, metadata: {name: a}, data: {same: YQ==, other: "
      "Yg==, new: YQ==}}");

  EXPECT_EQ(compared.expected,
            yaml("{apiVersion: v1, kind: Secret, type: Opaque, metadata: {name: a}, data: {same: "
                 "(withheld), other: '(withheld, as printed)', gone: '(withheld, as printed)'}, "
                 "stringData: {a: '(withheld, as printed)'}}"));
  EXPECT_EQ(*compared.actual,
            yaml("{apiVersion: v1, kind: Secret, type: Opaque, metadata: {name: a}, data: {same: "
                 "(withheld), other: '(withheld, another value)', new: '(withheld, another "
                 "value)'}}"));
}

TEST(WithholdSecretValues, WithholdsMembersOfWrongFormsAndCopiesInAnnotations) {
  const ComparedResource compared = withheld(
      "{apiVersion: v1, kind: Secret, metadata: {annotations: "
      "{kubectl.kubernetes.io/last-applied-configuration: word, a: b}}, data: word, Data: {a: "
      "word}, list: [word]}",
      "{apiVersion: v1, kind: Secret, metadata: {annotations: "
      "{kubectl.kubernetes.io/last-applied-configuration: word2, a: b}}, data: {a: word}}");

  for (const json::Value& side : {compared.expected, *compared.actual})
    EXPECT_EQ(json::dump(side).find("word"), std::string::npos) << json::dump(side);
  EXPECT_EQ(json::string_at(compared.expected, {"metadata", "annotations", "a"}), "b");
}

TEST(WithholdSecretValues, LeavesOtherKinds) {
  for (const std::string_view text :
       {"{apiVersion: v1, kind: ConfigMap, data: {a: b}}",
        "{apiVersion: examples.com/v1, kind: Secret, data: {a: b}}", "{data: {a: b}}"}) {
    EXPECT_EQ(withheld(text, text).expected, yaml(text));
  }
}

}  // namespace
}  // namespace hangar::commands
