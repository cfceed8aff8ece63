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

CurrentObject object() {
  return current_object(json::parse(R"({"metadata": {"resourceVersion": "7", "managedFields": [
    {"manager": "a", "operation": "Apply", "time": "2026-01-01T00:00:01Z",
     "fieldsV1": {"f:spec": {"f:replicas": {}, "f:template": {"f:spec": {}}}}},
    {"manager": "b", "operation": "Update", "time": "2026-01-01T00:00:03Z",
     "fieldsV1": {"f:spec": {"f:replicas": {}}, "f:metadata": {"f:labels": {"f:x.y/z": {}}}}},
    {"manager": "c", "operation": "Update", "subresource": "status", "time": "2026-01-01T00:00:03Z",
     "fieldsV1": {"f:status": {}}},
    {"manager": "d", "operation": "Update", "fieldsV1": {"f:spec": {"f:paused": {}}}}]}})")
                            .value());
}

std::vector<std::string> names(const std::vector<const FieldManager*>& managers) {
  std::vector<std::string> found;
  found.reserve(managers.size());
  for (const FieldManager* const manager : managers)
    found.push_back(manager->name);
  return found;
}

std::vector<std::string> setters(const CurrentObject& of, const std::string& field) {
  return names(managers_of(of, parse_field(field).value()));
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
  const CurrentObject one = object();
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
  const CurrentObject one = current_object(json::parse(R"({"metadata": {"managedFields": [
    {"manager": "a", "fieldsV1": {"f:spec": {}}},
    {"manager": "b", "fieldsV1": {"f:spec": {"f:nonce": {}}}}]}})")
                                               .value());
  EXPECT_THAT(setters(one, ".spec.nonce"), ElementsAre("b"));
  EXPECT_THAT(setters(one, ".spec.other"), IsEmpty());
  EXPECT_THAT(setters(one, ".spec"), ElementsAre("a", "b"));
}

TEST(Field, IsAPath) {
  EXPECT_THAT(parse_field(".spec.replicas").value(), ElementsAre("spec", "replicas"));
  for (const char* const wrong : {"", ".", "spec", ".spec.", "..spec"})
    EXPECT_FALSE(parse_field(wrong)) << wrong;
}

}  // namespace
}  // namespace hangar::commands
