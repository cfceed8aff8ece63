#include "kube/internal/known_groups.h"

#include "base/consumer.h"
#include "base/time.h"
#include "kube/object.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace hangar::kube::internal {
namespace {

using std::chrono::milliseconds;

const Instant kNow = Instant() + std::chrono::hours(1);
const Tenant kAttacker = Tenant::of_namespace("attacker");
const Tenant kVictim = Tenant::of_namespace("victim");

ServedGroup serves(const std::string& group, const std::string& kind) {
  return {{.version = "v1", .resources = {{group, "v1", "things", kind, true}}}};
}
bool has(const KnownGroups& groups, const std::string& group) {
  return groups.find(group, [](const Resource& resource) { return resource.kind == "Thing"; })
      .has_value();
}

TEST(KnownGroups, AreNotDisplacedByNamesOfGroupsThatDoNotExist) {
  KnownGroups groups;
  groups.add("real.io", serves("real.io", "Thing"), kNow);
  groups.add_missing("soon.io", kVictim, kNow);

  for (int index = 0; index < 20'000; ++index)
    groups.add_missing(fmt::format("none{}.io", index), kAttacker, kNow);

  EXPECT_TRUE(has(groups, "real.io"));
  EXPECT_TRUE(groups.is_recent("soon.io", kNow)) << "another tenant has asked for it";
  EXPECT_TRUE(groups.is_recent("none19999.io", kNow));
  EXPECT_FALSE(groups.is_recent("none0.io", kNow));
  EXPECT_EQ(groups.missing_count(), 65U);
}

TEST(KnownGroups, RememberForAMomentWhatTheServerLacks) {
  KnownGroups groups;
  groups.add("real.io", serves("real.io", "Thing"), kNow);
  groups.add_missing("none.io", kVictim, kNow);

  for (const std::string group : {"real.io", "none.io"}) {
    EXPECT_TRUE(groups.is_recent(group, kNow + milliseconds(999))) << group;
    EXPECT_FALSE(groups.is_recent(group, kNow + milliseconds(1000))) << group;
  }
  EXPECT_TRUE(has(groups, "real.io")) << "a known answer stays";
  groups.add_missing("other.io", kAttacker, kNow + milliseconds(1000));
  EXPECT_EQ(groups.missing_count(), 1U) << "older names are dropped";
}

TEST(KnownGroups, FollowTheServersLastAnswer) {
  KnownGroups groups;
  groups.add_missing("comes.io", kVictim, kNow);
  groups.add("comes.io", serves("comes.io", "Thing"), kNow);
  groups.add("goes.io", serves("goes.io", "Thing"), kNow);
  groups.add_missing("goes.io", kVictim, kNow);

  EXPECT_TRUE(has(groups, "comes.io"));
  EXPECT_FALSE(has(groups, "goes.io"));
  EXPECT_EQ(groups.missing_count(), 1U);
  groups.forget("comes.io");
  groups.forget("goes.io");
  EXPECT_FALSE(has(groups, "comes.io"));
  EXPECT_FALSE(groups.is_recent("comes.io", kNow) || groups.is_recent("goes.io", kNow));
}

}  // namespace
}  // namespace hangar::kube::internal
