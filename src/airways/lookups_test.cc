#include "airways/lookups.h"

#include "airways/limits.h"
#include "airways/resource_ref.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>

namespace hangar::airways {
namespace {

ResourceRef settings(std::size_t number) {
  return {{"", "ConfigMap"}, "default", "c-" + std::to_string(number)};
}

TEST(FollowedObjects, AreBoundedAndStayFollowedAfterARefusal) {
  FollowedObjects followed;
  for (std::size_t number = 0; number < limits::kFlightFollowedMax; ++number)
    EXPECT_TRUE(followed.take(settings(number))) << number;

  EXPECT_FALSE(followed.take(settings(limits::kFlightFollowedMax)));

  EXPECT_TRUE(followed.take(settings(0)));
  EXPECT_FALSE(followed.take(settings(limits::kFlightFollowedMax))) << "it has taken no place";
}

}  // namespace
}  // namespace hangar::airways
