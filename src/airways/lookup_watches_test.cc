#include "airways/lookup_watches.h"

#include "airways/resource_ref.h"
#include "base/result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace hangar::airways {
namespace {

using testing::HasSubstr;

ResourceRef instance(std::string namespace_name, std::string name) {
  return {.kind = {.group = "examples.com", .kind = "Backend"},
          .namespace_ = std::move(namespace_name),
          .name = std::move(name)};
}
ResourceRef secret(std::string name) {
  return {.kind = {.group = "", .kind = "Secret"}, .namespace_ = "vault", .name = std::move(name)};
}

TEST(LookupWatches, RefusesOneObjectTooManyAndSaysWhatToDo) {
  LookupWatches watches(/*objects_max=*/2);
  EXPECT_TRUE(watches.add(instance("team", "a"), secret("1")).has_value());
  EXPECT_TRUE(watches.add(instance("team", "b"), secret("2")).has_value());

  const Result<> refused = watches.add(instance("team", "c"), secret("3"));

  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().kind(), ErrorKind::LimitExceeded);
  EXPECT_THAT(refused.error().message(), HasSubstr("namespace team look up 2 objects"));
  EXPECT_THAT(refused.error().message(), HasSubstr("look up fewer"));
  EXPECT_EQ(watches.count("team"), 2U) << "a refused object takes no place";
  EXPECT_TRUE(watches.add(instance("other", "a"), secret("3")).has_value());
}

TEST(LookupWatches, CountsAnObjectOnceForAllInstancesOfItsNamespace) {
  LookupWatches watches(/*objects_max=*/1);
  EXPECT_TRUE(watches.add(instance("team", "a"), secret("1")).has_value());
  EXPECT_TRUE(watches.add(instance("team", "b"), secret("1")).has_value());
  EXPECT_EQ(watches.count("team"), 1U);

  watches.remove(instance("team", "a"), secret("1"));
  EXPECT_FALSE(watches.add(instance("team", "a"), secret("2")).has_value()) << "b watches it still";
  watches.remove(instance("team", "b"), secret("1"));

  EXPECT_EQ(watches.count("team"), 0U);
  EXPECT_TRUE(watches.add(instance("team", "a"), secret("2")).has_value());
}

TEST(LookupWatches, DoesNotBoundInstancesOfNoNamespace) {
  LookupWatches watches(/*objects_max=*/1);

  for (const char* const name : {"1", "2", "3"})
    EXPECT_TRUE(watches.add(instance("", "cluster-wide"), secret(name)).has_value());

  watches.remove(instance("", "cluster-wide"), secret("1"));
  EXPECT_EQ(watches.count(""), 0U);
}

}  // namespace
}  // namespace hangar::airways
