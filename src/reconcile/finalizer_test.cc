#include "reconcile/finalizer.h"

#include "json/value.h"

#include <gtest/gtest.h>

#include <string>

namespace hangar::reconcile {
namespace {

json::Value object(const std::string& finalizers) {
  return json::parse(R"({"metadata":{"name":"a","resourceVersion":"7","finalizers":)" + finalizers +
                     "}}")
      .value();
}

std::string patch(const std::string& finalizers, Presence presence) {
  const auto made = finalizer_patch(object(finalizers), "ours", presence);
  return made ? json::dump(*made) : "none";
}

constexpr const char* kVersion =
    R"([{"op":"replace","path":"/metadata/resourceVersion","value":"7"},)";

TEST(FinalizerPatch, AddsAfterThoseOfOthers) {
  EXPECT_EQ(patch(R"(["theirs"])", Presence::Present),
            std::string(kVersion) +
                R"({"op":"add","path":"/metadata/finalizers","value":["theirs","ours"]}])");
  EXPECT_EQ(
      patch("null", Presence::Present),
      std::string(kVersion) + R"({"op":"add","path":"/metadata/finalizers","value":["ours"]}])");
}

TEST(FinalizerPatch, RemovesOnlyOurs) {
  EXPECT_EQ(
      patch(R"(["a","ours","b"])", Presence::Absent),
      std::string(kVersion) + R"({"op":"add","path":"/metadata/finalizers","value":["a","b"]}])");
}

TEST(FinalizerPatch, IsNoneWhenThereIsNothingToDo) {
  EXPECT_EQ(patch(R"(["a","ours"])", Presence::Present), "none");
  EXPECT_EQ(patch(R"(["a"])", Presence::Absent), "none");
  EXPECT_EQ(patch("null", Presence::Absent), "none");
}

}  // namespace
}  // namespace hangar::reconcile
