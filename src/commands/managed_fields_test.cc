#include "commands/managed_fields.h"

#include "json/value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hangar::commands {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

json::Value manifest() {
  return json::parse(R"({"metadata": {"resourceVersion": "7", "managedFields": [
    {"manager": "a", "operation": "Apply", "time": "2026-01-01T00:00:01Z",
     "fieldsV1": {"f:spec": {"f:replicas": {}, "f:template": {"f:spec": {}}}}},
    {"manager": "b", "operation": "Update", "time": "2026-01-01T00:00:03Z",
     "fieldsV1": {"f:spec": {"f:replicas": {}}, "f:metadata": {"f:labels": {"f:x.y/z": {}}}}},
    {"manager": "c", "operation": "Update", "subresource": "status", "time": "2026-01-01T00:00:03Z",
     "fieldsV1": {"f:status": {}}},
    {"manager": "d", "operation": "Update", "fieldsV1": {"f:spec": {"f:paused": {}}}}]}})")
      .value();
}

CurrentObject object() {
  return current_object(manifest());
}

// A list by keys, a list of texts, and a list that is written as a whole.
json::Value pod() {
  return json::parse(R"({
    "metadata": {"finalizers": ["x.y/a", "x.y/b"], "managedFields": [
      {"manager": "a", "fieldsV1": {
        "f:metadata": {"f:finalizers": {".": {}, "v:\"x.y/a\"": {}}},
        "f:spec": {"f:containers": {
          "k:{\"name\":\"web\"}": {".": {}, "f:image": {}, "f:name": {}, "f:ports": {
            "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}}},
          "k:{\"name\":\"log\"}": {".": {}, "f:args": {}, "f:name": {}}}}}},
      {"manager": "b", "fieldsV1": {
        "f:metadata": {"f:finalizers": {"v:\"x.y/b\"": {}}},
        "f:spec": {"f:containers": {"k:{\"name\":\"log\"}": {"f:image": {}}}}}}]},
    "spec": {"containers": [
      {"name": "web", "image": "w:1", "ports": [{"containerPort": 80, "protocol": "TCP"},
                                                {"containerPort": 80, "protocol": "UDP"}]},
      {"name": "log", "image": "l:1", "args": ["-v", "-v"]}]}})")
      .value();
}

std::vector<std::string> names(const std::vector<const FieldManager*>& managers) {
  std::vector<std::string> found;
  found.reserve(managers.size());
  for (const FieldManager* const manager : managers)
    found.push_back(manager->name);
  return found;
}

std::vector<std::string> setters(const json::Value& of, const std::string& field) {
  const CurrentObject one = current_object(of);
  return names(managers_of(one, find_field(of, parse_field(field).value()).value()));
}

// Why there is no such field in pod().
std::string fault(const std::string& field) {
  const Result<FieldPath> found = find_field(pod(), parse_field(field).value());
  return found ? "none" : found.error().message();
}

TEST(ManagedFields, SayWhoWroteLast) {
  const CurrentObject one = object();
  EXPECT_EQ(one.version, 7U);
  EXPECT_THAT(names(last_managers(one)), ElementsAre("b", "c"));
  EXPECT_THAT(names(last_managers(one, parse_rfc3339("2026-01-01T00:00:02Z").value())),
              ElementsAre("a"));
  EXPECT_THAT(last_managers(CurrentObject()), IsEmpty());
}

TEST(ManagedFields, SayWhoSetAField) {
  const json::Value one = manifest();
  EXPECT_THAT(setters(one, ".spec.replicas"), ElementsAre("b"));
  EXPECT_THAT(setters(one, ".spec.template"), ElementsAre("a"));
  EXPECT_THAT(setters(one, ".spec.template.spec.containers"), ElementsAre("a")) << "owned whole";
  EXPECT_THAT(setters(one, ".metadata.labels.x\\.y/z"), ElementsAre("b"));
  EXPECT_THAT(setters(one, ".spec.paused"), ElementsAre("d"));
  EXPECT_THAT(setters(one, ".spec.other"), IsEmpty());
  EXPECT_THAT(setters(one, ".data"), IsEmpty());
}

TEST(ManagedFields, TellAParentFromWhatIsWrittenAsAWhole) {
  // The first manager created spec; another one has taken over its only part.
  const json::Value one = json::parse(R"({"metadata": {"managedFields": [
    {"manager": "a", "fieldsV1": {"f:spec": {}}},
    {"manager": "b", "fieldsV1": {"f:spec": {"f:nonce": {}}}}]}})")
                              .value();
  EXPECT_THAT(setters(one, ".spec.nonce"), ElementsAre("b"));
  EXPECT_THAT(setters(one, ".spec.other"), IsEmpty());
  EXPECT_THAT(setters(one, ".spec"), ElementsAre("a", "b"));
}

TEST(ManagedFields, SayWhoSetAFieldOfAnItem) {
  const json::Value one = pod();
  const std::string containers = ".spec.containers";
  EXPECT_THAT(setters(one, containers + "[name=web].image"), ElementsAre("a"));
  EXPECT_THAT(setters(one, containers + "[name=\"log\"].image"), ElementsAre("b"));
  EXPECT_THAT(setters(one, containers + "[0].image"), ElementsAre("a"));
  EXPECT_THAT(setters(one, containers + "[1].image"), ElementsAre("b"));
  EXPECT_THAT(setters(one, containers + "[1]"), ElementsAre("a", "b"));
  EXPECT_THAT(setters(one, containers + "[name=web].ports[containerPort=80,protocol=TCP]"),
              ElementsAre("a"));
  EXPECT_THAT(setters(one, containers + "[0].ports[1]"), IsEmpty()) << "another protocol";
  EXPECT_THAT(setters(one, containers + "[1].args[1]"), ElementsAre("a")) << "owned whole";
  EXPECT_THAT(setters(one, containers + "[1].command"), IsEmpty());
}

TEST(ManagedFields, SayWhoSetAnItemOfAListOfTexts) {
  const json::Value one = pod();
  EXPECT_THAT(setters(one, ".metadata.finalizers[0]"), ElementsAre("a"));
  EXPECT_THAT(setters(one, ".metadata.finalizers[1]"), ElementsAre("b"));
  EXPECT_THAT(setters(one, ".metadata.finalizers[=x.y/b]"), ElementsAre("b"));
  EXPECT_THAT(setters(one, ".metadata.finalizers[=\"x.y/b\"]"), ElementsAre("b"));
  EXPECT_THAT(setters(one, ".spec.containers[1].args[=-v]"), ElementsAre("a")) << "twice the same";
}

TEST(Field, IsAPath) {
  const auto texts = [](const std::string& text) {
    std::vector<std::string> found;
    const std::vector<FieldStep> steps = parse_field(text).value();
    for (const FieldStep& step : steps)
      found.push_back(step.text);
    return found;
  };
  EXPECT_THAT(texts(".spec.replicas"), ElementsAre(".spec", ".replicas"));
  EXPECT_THAT(texts(".a\\.b[0][c=d\\]e].f"), ElementsAre(".a\\.b", "[0]", "[c=d\\]e]", ".f"));
  EXPECT_THAT(texts(".a[b=\"c]d\",e=]"), ElementsAre(".a", "[b=\"c]d\",e=]"));
  for (const char* const wrong :
       {"",          ".",         "spec",         ".spec.", "..spec",   "[0]",       ".a[]",
        ".a[b]",     ".a[-1]",    ".a[0",         ".a[b=c", ".a[b=c,]", ".a[=c=d\"", ".a[=c,d]",
        ".a[\"b\"]", ".a[b=\"c]", ".a[b=\"c\"d]", ".a[0]b", ".a.[0]",   ".a[0]."}) {
    EXPECT_FALSE(parse_field(wrong)) << wrong;
  }
}

TEST(Field, ThatCannotBeFollowedSaysWhatToWrite) {
  EXPECT_EQ(fault(".spec.containers.image"),
            ".spec.containers is a list with 2 items: write one of them, such as "
            ".spec.containers[name=web]");
  EXPECT_EQ(fault(".metadata.finalizers.a"),
            ".metadata.finalizers is a list with 2 items: write one of them, such as "
            ".metadata.finalizers[0]");
  EXPECT_EQ(fault(".spec.containers[2]"),
            "there is no .spec.containers[2]: .spec.containers has 2 items, and the first one is "
            "[0]");
  EXPECT_EQ(fault(".spec.containers[name=app].image"),
            "there is no .spec.containers[name=app]: .spec.containers has 2 items, such as "
            "[name=web]");
  EXPECT_EQ(fault(".spec.containers[0].ports[containerPort=80]"),
            "2 items are .spec.containers[0].ports[containerPort=80]: add another key of the item, "
            "such as [port=80,protocol=TCP], or write its index, such as [0]");
  EXPECT_EQ(fault(".spec.volumes[0]"),
            "there is no .spec.volumes[0]: the object has no .spec.volumes");
  EXPECT_EQ(fault(".spec[0]"),
            "there is no .spec[0]: .spec is not a list; write a member of it as .spec.NAME");
  EXPECT_EQ(fault(".spec.volumes"), "none");
}

}  // namespace
}  // namespace hangar::commands
