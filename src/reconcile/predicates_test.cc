#include "reconcile/predicates.h"

#include "kube/cache/store.h"
#include "kube/object.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace hangar::reconcile {
namespace {

kube::ObjectPtr object(const std::string& metadata) {
  return kube::Object::make(
             fmt::format(
                 R"({{"apiVersion":"v1","kind":"X","metadata":{{"name":"a","uid":"1",{}}}}})",
                 metadata))
      .value();
}

kube::Delta modified(const std::string& before, const std::string& after) {
  return {.type = kube::Delta::Type::Modified, .object = object(after), .previous = object(before)};
}

TEST(Predicates, TakeEverythingThatAppearsOrGoes) {
  for (const auto type : {kube::Delta::Type::Added, kube::Delta::Type::Deleted}) {
    const kube::Delta delta{.type = type, .object = object(R"("generation":1)")};
    EXPECT_TRUE(generation_changed(delta));
    EXPECT_TRUE(labels_changed(delta));
    EXPECT_TRUE(annotations_changed(delta));
    EXPECT_TRUE(resource_version_changed(delta));
  }
}

TEST(Predicates, TellASpecFromAStatus) {
  EXPECT_FALSE(generation_changed(modified(R"("generation":1,"resourceVersion":"1")",
                                           R"("generation":1,"resourceVersion":"2")")));
  EXPECT_TRUE(generation_changed(modified(R"("generation":1)", R"("generation":2)")));
  EXPECT_TRUE(generation_changed(modified(
      R"("generation":1)", R"("generation":1,"deletionTimestamp":"2026-04-08T12:00:00Z")")));
}

TEST(Predicates, CompareLabelsAndAnnotationsAsMaps) {
  EXPECT_FALSE(
      labels_changed(modified(R"("labels":{"a":"1","b":"2"})", R"("labels":{"b":"2","a":"1"})")));
  EXPECT_TRUE(labels_changed(modified(R"("labels":{"a":"1"})", R"("labels":{"a":"2"})")));
  EXPECT_TRUE(labels_changed(modified(R"("generation":1)", R"("labels":{"a":"2"})")));
  EXPECT_FALSE(annotations_changed(modified(R"("labels":{"a":"1"})", R"("labels":{"a":"2"})")));
  EXPECT_TRUE(annotations_changed(modified(R"("annotations":{"a":"1"})", R"("generation":1)")));
}

}  // namespace
}  // namespace hangar::reconcile
