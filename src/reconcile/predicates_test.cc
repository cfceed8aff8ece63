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
  }
}

TEST(Predicates, TellASpecFromAStatus) {
  EXPECT_FALSE(generation_changed(modified(R"("generation":1,"resourceVersion":"1")",
                                           R"("generation":1,"resourceVersion":"2")")));
  EXPECT_TRUE(generation_changed(modified(R"("generation":1)", R"("generation":2)")));
  EXPECT_TRUE(generation_changed(modified(
      R"("generation":1)", R"("generation":1,"deletionTimestamp":"2026-04-08T12:00:00Z")")));
}

TEST(Predicates, CompareVersionsAsNumbers) {
  EXPECT_TRUE(is_older("9", "10"));
  EXPECT_FALSE(is_older("10", "9"));
  EXPECT_FALSE(is_older("9", "9"));
  EXPECT_FALSE(is_older("a", "10"));
  EXPECT_FALSE(is_older("", "10"));
}

}  // namespace
}  // namespace hangar::reconcile
