#include "kube/status_only.h"

#include "kube/object.h"

#include <gtest/gtest.h>

#include <string_view>

namespace hangar::kube {
namespace {

ObjectPtr object(std::string_view text) {
  return Object::make(text).value();
}

constexpr std::string_view kBefore =
    R"({"apiVersion":"v1","kind":"A","metadata":{"name":"a","resourceVersion":"1","generation":1,)"
    R"("labels":{"x":"y"}},"spec":{"status":1},"status":{"ready":false}})";

TEST(DiffersInStatusOnly, LooksPastTheStatusAndWhatTheServerCounts) {
  EXPECT_TRUE(differs_in_status_only(
      *object(kBefore),
      *object(R"({"apiVersion":"v1","kind":"A","metadata":{"name":"a","resourceVersion":"2",)"
              R"("generation":1,"labels":{"x":"y"},"managedFields":[{"manager":"m"}]},)"
              R"("spec":{"status":1},"status":{"ready":true}})")));
  EXPECT_TRUE(differs_in_status_only(
      *object(kBefore),
      *object(R"({"apiVersion":"v1","kind":"A","metadata":{"name":"a","resourceVersion":"3",)"
              R"("generation":2,"labels":{"x":"y"}},"spec":{"status":1}})")));
}

TEST(DiffersInStatusOnly, SeesEveryOtherChange) {
  for (
      const std::string_view after : {
          R"({"apiVersion":"v1","kind":"A","metadata":{"name":"a","labels":{"x":"y"}},"spec":{"status":2}})",
          R"({"apiVersion":"v1","kind":"A","metadata":{"name":"a","labels":{"x":"z"}},"spec":{"status":1}})",
          R"({"apiVersion":"v1","kind":"A","metadata":{"name":"a"},"spec":{"status":1}})",
          R"({"apiVersion":"v1","kind":"A","metadata":{"name":"a","labels":{"x":"y"},"annotations":{"a":"b"}},"spec":{"status":1}})",
          R"({"apiVersion":"v1","kind":"A","metadata":{"name":"a","labels":{"x":"y"},"deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"status":1}})",
          R"({"apiVersion":"v2","kind":"A","metadata":{"name":"a","labels":{"x":"y"}},"spec":{"status":1}})",
          R"({"apiVersion":"v1","kind":"A","metadata":{"name":"a","labels":{"x":"y"}}})",
      }) {
    EXPECT_FALSE(differs_in_status_only(*object(kBefore), *object(after))) << after;
  }
}

}  // namespace
}  // namespace hangar::kube
