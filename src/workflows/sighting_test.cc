#include "workflows/sighting.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::workflows {
namespace {

OwnedResource pvc(std::string seen) {
  return {.api_version = "v1",
          .kind = "PersistentVolumeClaim",
          .namespace_ = "team",
          .name = "db",
          .seen = std::move(seen)};
}

TEST(Sighting, ANewerVersionIsAChangeThatNamesTheObject) {
  const auto change = change_of(pvc("9"), {.live = "10", .watch = "10"});

  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->seen, "10");
  EXPECT_EQ(json::dump(change->event), R"({"type":"K8S_RESOURCE_CHANGED","resourceName":"db",)"
                                       R"("apiVersion":"v1","kind":"PersistentVolumeClaim"})");
}

TEST(Sighting, WhatTheMachineKnowsIsNoChange) {
  EXPECT_FALSE(change_of(pvc("10"), {.live = "10", .watch = "12"}).has_value());
}

// The watch lags behind the write that the machine knows of.
TEST(Sighting, AnOlderVersionIsNoChange) {
  EXPECT_FALSE(change_of(pvc("10"), {.live = "9", .watch = "9"}).has_value());
}

TEST(Sighting, AnObjectIsGoneOnlyForAWatchThatHasSeenTheVersionThatIsKnown) {
  EXPECT_FALSE(change_of(pvc("10"), {.watch = "9"}).has_value()) << "it may not be there yet";
  EXPECT_FALSE(change_of(pvc("10"), {.watch = "10"}).has_value());

  const auto change = change_of(pvc("10"), {.watch = "11"});
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->seen, kSeenDeleted);
  EXPECT_EQ(json::string_at(change->event, {"type"}), "K8S_RESOURCE_DELETED");
  EXPECT_EQ(json::string_at(change->event, {"resourceName"}), "db");
}

// Anybody may have edited the status.
TEST(Sighting, AVersionThatCannotBeComparedIsNoChange) {
  EXPECT_FALSE(change_of(pvc("abc"), {.live = "10", .watch = "10"}).has_value());
  EXPECT_FALSE(change_of(pvc("abc"), {.watch = "10"}).has_value());
}

TEST(Sighting, OnlyAVersionThatTheMachineWasToldOfIsFollowed) {
  EXPECT_TRUE(is_followed(pvc("10")));
  EXPECT_FALSE(is_followed(pvc("")));
  EXPECT_FALSE(is_followed(pvc(std::string(kSeenDeleted)))) << "it would be told twice";
}

}  // namespace
}  // namespace hangar::workflows
