#include "budget/cache_charges.h"

#include "base/limits.h"
#include "base/result.h"
#include "budget/accounts.h"
#include "budget/consumer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <utility>
#include <vector>

namespace hangar::budget {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr std::uint64_t kBlock = 4096;

class CacheChargesTest : public testing::Test {
 protected:
  using Shelf = CacheCharges::Shelf;
  using Hold = CacheCharges::Hold;
  using File = CacheCharges::File;

  CacheChargesTest() {
    for (const Shelf shelf : {Shelf::Modules, Shelf::Code}) {
      charges_.set_remover(shelf, [this](const std::string& name) { removed_.push_back(name); });
    }
  }

  static Tenant tenant(std::string name) { return Tenant::of_namespace(std::move(name)); }
  std::expected<Hold, Shortage> charge(std::string tenant_name, std::string name,
                                       std::uint64_t blocks, Shelf shelf = Shelf::Modules) {
    return charges_.charge(tenant(std::move(tenant_name)),
                           {.shelf = shelf, .name = std::move(name)}, blocks * kBlock);
  }
  // Uses the file and does not hold it.
  bool use(std::string tenant_name, std::string name, std::uint64_t blocks) {
    return charge(std::move(tenant_name), std::move(name), blocks).has_value();
  }
  [[nodiscard]] std::uint64_t blocks_of(std::string name) const {
    return charges_.charged_bytes(tenant(std::move(name))) / kBlock;
  }
  std::vector<std::string> make_room(std::vector<File> files, std::uint64_t blocks_max,
                                     std::string kept = {}) {
    for (File& file : files)
      file.bytes *= kBlock;
    std::vector<std::string> names;
    for (const std::size_t index :
         charges_.make_room(Shelf::Modules, files, blocks_max * kBlock, kept)) {
      names.push_back(files[index].name);
    }
    return names;
  }

  CacheCharges charges_{{.namespace_bytes_max = 10 * kBlock, .uses_per_namespace_max = 20}};
  std::vector<std::string> removed_;
};

TEST_F(CacheChargesTest, ANamespaceBeyondItsLimitLosesItsLeastRecentUses) {
  use("a", "one", 4);
  use("a", "two", 4);
  use("b", "other", 10);
  use("a", "one", 4);

  EXPECT_TRUE(use("a", "three", 6));

  EXPECT_THAT(removed_, ElementsAre("two"));
  EXPECT_EQ(blocks_of("a"), 10U);
  EXPECT_EQ(blocks_of("b"), 10U) << "others' things stay";
}

TEST_F(CacheChargesTest, AFileStaysWhileAnotherNamespaceUsesIt) {
  use("a", "shared", 4);
  use("b", "shared", 4);
  EXPECT_EQ(blocks_of("a"), 4U) << "each is charged the whole of it";
  EXPECT_EQ(blocks_of("b"), 4U);

  use("a", "large", 10);

  EXPECT_THAT(removed_, IsEmpty());
  EXPECT_EQ(blocks_of("a"), 10U);
  use("b", "large", 10);
  EXPECT_THAT(removed_, ElementsAre("shared")) << "it goes with its last use";
}

TEST_F(CacheChargesTest, WhatFillsTheLimitFitsAndOneBlockMoreIsRefused) {
  EXPECT_TRUE(charge("a", "one", 10));
  const auto refused = charges_.charge(tenant("a"), {.name = "two"}, 10 * kBlock + 1);

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), (Shortage{.level = Shortage::Level::Tenant,
                                       .wanted_bytes = 11 * kBlock,
                                       .free_bytes = 10 * kBlock,
                                       .limit_bytes = 10 * kBlock}));
  EXPECT_TRUE(refused.error().is_final());
  EXPECT_THAT(removed_, IsEmpty()) << "a shortage changes nothing";
  EXPECT_EQ(blocks_of("a"), 10U);
}

TEST_F(CacheChargesTest, WhatRunsIsNotTakenAway) {
  Hold running = *charge("a", "runs", 6, Shelf::Code);
  use("a", "one", 4);

  EXPECT_TRUE(use("a", "two", 4));
  const auto refused = charge("a", "three", 5);
  EXPECT_TRUE(charges_.check(tenant("a"), 4 * kBlock));
  EXPECT_FALSE(charges_.check(tenant("a"), 5 * kBlock));

  EXPECT_THAT(removed_, ElementsAre("one"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().free_bytes, 4 * kBlock);
  EXPECT_FALSE(refused.error().is_final());
  running = Hold();
  EXPECT_TRUE(use("a", "three", 5));
  EXPECT_THAT(removed_, ElementsAre("one", "runs"));
}

TEST_F(CacheChargesTest, ThereMayBeSeveralHoldsOfOneUse) {
  Hold first = *charge("a", "runs", 6);
  Hold second = *charge("a", "runs", 6);
  first = Hold();

  EXPECT_FALSE(use("a", "one", 5));
  second = Hold();
  EXPECT_TRUE(use("a", "one", 5));
}

TEST_F(CacheChargesTest, WhatOneNamespaceHoldsIsNoHoldOfAnother) {
  use("a", "shared", 6);
  const Hold running = *charge("b", "shared", 6);

  EXPECT_TRUE(use("a", "one", 10));

  EXPECT_EQ(blocks_of("a"), 10U);
  EXPECT_THAT(removed_, IsEmpty());
}

TEST_F(CacheChargesTest, AnImageEndsWithItsLastHold) {
  Hold running = *charge("a", "image", 6, Shelf::Images);
  EXPECT_EQ(blocks_of("a"), 6U);

  running = Hold();

  EXPECT_EQ(blocks_of("a"), 0U);
  EXPECT_THAT(charges_.charged(), IsEmpty());
}

TEST_F(CacheChargesTest, AHoldMayOutliveTheCharges) {
  Hold held;
  {
    CacheCharges charges;
    held = *charges.charge(tenant("a"), {.name = "one"}, 1);
  }
  held = Hold();
}

TEST_F(CacheChargesTest, APolicyIsNamedByTheRefusal) {
  charges_.limit_tenants(
      {.namespaces = {{"a", {.bytes_max = 5 * kBlock, .set_by = "TenantPolicy small"}}}});

  EXPECT_TRUE(use("a", "one", 5));
  const auto refused = charge("a", "two", 6);
  EXPECT_TRUE(use("b", "two", 6));

  ASSERT_FALSE(refused);
  const Error error = too_little_disk(refused.error());
  EXPECT_EQ(error.kind(), ErrorKind::LimitExceeded);
  EXPECT_EQ(error.reason(), kRefusedByPolicy);
  EXPECT_THAT(error.message(), HasSubstr("20 KiB of its namespace (TenantPolicy small) are free"));
  EXPECT_TRUE(is_too_little_disk(error));
  const Error of_host = too_little_disk({.level = Shortage::Level::Tenant});
  EXPECT_EQ(of_host.reason(), kNamespaceDisk) << "the host's own limit is no policy";
  EXPECT_TRUE(is_too_little_disk(of_host));
  EXPECT_EQ(charges_.limit_of(tenant("a")).bytes_max, 5 * kBlock);
  EXPECT_EQ(charges_.limit_of(tenant("b")).bytes_max, 10 * kBlock);
}

TEST_F(CacheChargesTest, ALowerLimitCountsFromTheNextUse) {
  use("a", "one", 5);
  const Hold running = *charge("a", "two", 5);
  charges_.limit_tenants({.others = {.bytes_max = 4 * kBlock, .set_by = "TenantPolicy small"}});
  EXPECT_EQ(blocks_of("a"), 10U);

  EXPECT_TRUE(use("a", "two", 5)) << "it runs already";

  EXPECT_THAT(removed_, ElementsAre("one"));
  EXPECT_FALSE(use("a", "three", 1));
}

TEST_F(CacheChargesTest, OnlyNamespacesHaveALimit) {
  EXPECT_TRUE(use("", "airway", 1000));
  EXPECT_TRUE(charges_.charge(Tenant::host(), {.name = "own"}, 1000 * kBlock));

  EXPECT_EQ(blocks_of(""), 1000U);
  EXPECT_FALSE(charges_.is_used({.name = "own"}));
}

TEST_F(CacheChargesTest, SmallFilesCountAsBlocks) {
  for (int index = 0; index < 11; ++index)
    ASSERT_TRUE(charges_.charge(tenant("a"), {.name = std::to_string(index)}, 1));

  EXPECT_EQ(blocks_of("a"), 10U);
  EXPECT_THAT(removed_, ElementsAre("0"));
}

TEST_F(CacheChargesTest, ANamespaceHasSoManyFilesHoweverSmall) {
  CacheCharges charges({.uses_per_namespace_max = 20});
  for (int index = 0; index < 21; ++index) {
    ASSERT_TRUE(charges.charge(tenant("a"), {.name = std::to_string(index)}, 1));
    ASSERT_TRUE(charges.charge(tenant(""), {.name = std::to_string(index)}, 1));
  }

  EXPECT_EQ(charges.charged_bytes(tenant("a")), 20 * kBlock);
  EXPECT_EQ(charges.charged_bytes(tenant("")), 21 * kBlock);
}

TEST_F(CacheChargesTest, AFileThatIsGoneIsChargedToThoseThatHaveItOpen) {
  use("a", "one", 3);
  Hold running = *charge("b", "one", 3);

  charges_.forget({.name = "one"});

  EXPECT_EQ(blocks_of("a"), 0U);
  EXPECT_EQ(blocks_of("b"), 3U);
  running = Hold();
  EXPECT_EQ(blocks_of("b"), 0U);
}

TEST_F(CacheChargesTest, AFileThatGrewIsChargedAsItIs) {
  use("a", "one", 3);
  use("b", "one", 4);

  EXPECT_EQ(blocks_of("a"), 4U);
}

TEST_F(CacheChargesTest, RoomIsMadeByTheNamespaceThatIsChargedTheMost) {
  use("quiet", "q", 3);
  for (const std::string name : {"1", "2", "3"})
    use("greedy", name, 3);
  use("quiet", "shared", 1);
  use("greedy", "shared", 1);
  const std::vector<File> files = {
      {"q", 3, 0}, {"1", 3, 9}, {"2", 3, 8}, {"3", 3, 7}, {"shared", 1, 6}};

  EXPECT_THAT(make_room(files, 13), IsEmpty());
  EXPECT_THAT(make_room(files, 12), ElementsAre("1")) << "its least recent use, whatever the time";
  EXPECT_EQ(blocks_of("greedy"), 7U);
  EXPECT_EQ(blocks_of("quiet"), 4U);
}

TEST_F(CacheChargesTest, WhatNobodyHasUsedYetCountsAsOneTenants) {
  use("a", "a", 2);
  const std::vector<File> files = {{"a", 2, 1}, {"old", 2, 2}, {"older", 2, -5}};

  EXPECT_THAT(make_room(files, 5), ElementsAre("older"));
  EXPECT_THAT(make_room({{"a", 2, 1}, {"old", 1, 2}}, 2), ElementsAre("a"));
}

TEST_F(CacheChargesTest, ASharedFileGoesOnlyWhenAllItsUsersAreToMakeRoom) {
  use("a", "shared", 4);
  use("b", "shared", 4);
  use("c", "c", 3);
  const std::vector<File> files = {{"shared", 4, 1}, {"c", 3, 1}};

  EXPECT_THAT(make_room(files, 6), ElementsAre("shared"));
  EXPECT_EQ(blocks_of("a") + blocks_of("b"), 0U);
  EXPECT_EQ(blocks_of("c"), 3U);
}

TEST_F(CacheChargesTest, WhatTheGreediestHoldsMakesRoomBeforeWhatOthersUse) {
  const Hold older = *charge("greedy", "older", 5);
  const Hold newer = *charge("greedy", "newer", 5);
  use("quiet", "q", 3);
  const std::vector<File> files = {{"older", 5, 1}, {"newer", 5, 2}, {"q", 3, 0}};

  EXPECT_THAT(make_room(files, 12), ElementsAre("older"));
  EXPECT_EQ(blocks_of("quiet"), 3U);
  EXPECT_EQ(blocks_of("greedy"), 10U) << "an open file takes its place";
}

TEST_F(CacheChargesTest, AFileThatOneHoldsAndAnotherUsesGoesWhenBothAreToMakeRoom) {
  const Hold running = *charge("a", "shared", 6);
  use("b", "shared", 6);
  use("c", "c", 1);

  EXPECT_THAT(make_room({{"shared", 6, 1}, {"c", 1, 1}}, 6), ElementsAre("shared"));
  EXPECT_EQ(blocks_of("a"), 6U);
  EXPECT_EQ(blocks_of("b"), 0U);
  EXPECT_EQ(blocks_of("c"), 1U);
}

TEST_F(CacheChargesTest, WhatATenantHoldsMakesRoomLastAndTheKeptFileNever) {
  Hold running = *charge("a", "runs", 6);
  use("a", "idle", 1);
  const std::vector<File> files = {{"runs", 6, 1}, {"idle", 1, 2}, {"new", 9, 3}};

  EXPECT_THAT(make_room(files, 15, "new"), ElementsAre("idle"));
  use("a", "idle", 1);
  EXPECT_THAT(make_room(files, 1, "new"), ElementsAre("idle", "runs"));
  EXPECT_EQ(blocks_of("a"), 6U) << "an open file takes its place";
  running = Hold();
  EXPECT_EQ(blocks_of("a"), 0U);
}

}  // namespace
}  // namespace hangar::budget
