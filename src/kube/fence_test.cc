#include "kube/fence.h"

#include "io/loop.h"

#include <gtest/gtest.h>

#include <chrono>

namespace hangar::kube {
namespace {

constexpr std::chrono::hours kAway{1};

TEST(Fence, IsShutUntilItIsOpened) {
  EXPECT_FALSE(Fence().is_open());
}

TEST(Fence, IsOpenUntilEitherClockIsThere) {
  const auto now = io::Loop::now();
  const auto wall_now = io::Loop::wall_now();
  Fence fence;

  fence.open_until(now + kAway, wall_now + kAway);
  EXPECT_TRUE(fence.is_open());

  fence.open_until(now - kAway, wall_now + kAway);
  EXPECT_FALSE(fence.is_open());

  fence.open_until(now + kAway, wall_now - kAway);
  EXPECT_FALSE(fence.is_open());
}

TEST(Fence, IsShutAtOnce) {
  Fence fence;
  fence.open_until(io::Loop::now() + kAway, io::Loop::wall_now() + kAway);

  fence.shut();

  EXPECT_FALSE(fence.is_open());
}

}  // namespace
}  // namespace hangar::kube
