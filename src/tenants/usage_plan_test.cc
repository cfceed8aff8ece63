#include "tenants/usage_plan.h"

#include "base/time.h"
#include "json/value.h"
#include "tenants/usage.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace hangar::tenants {
namespace {

const Instant kNow = Instant() + std::chrono::hours(1);

using Documents = std::map<std::string, json::Value>;

Documents of(const std::string& name, std::uint64_t bytes) {
  return {{name, usage_document(name, {.guest_memory = {.used = bytes}})}};
}

// Writes everything that is due.
std::size_t write_all(UsagePlan& plan, const Documents& documents, Instant now) {
  const std::vector<UsagePlan::Due> due = plan.look(documents, now);
  for (const UsagePlan::Due& one : due)
    plan.done(one, now);
  return due.size();
}

TEST(TenantUsage, SaysWhatIsUsedOfWhatMayBe) {
  const json::Value document =
      usage_document("team", {.policies = {"a"},
                              .guest_memory = {.used = 10, .limit = 20, .policy = "a"},
                              .guest_disk = {.used = 5, .limit = 6},
                              .module_disk = {.used = 9, .limit = 10, .policy = "a"},
                              .output = {.used = 7, .limit = 8, .policy = "a"},
                              .operators = {.used = 3},
                              .operators_awake = 1,
                              .operators_asleep = 2,
                              .flights = 4,
                              .feed_memory = {.used = 11, .limit = 12},
                              .answer_memory = {.used = 13, .limit = 14},
                              .fetches = {.used = 1, .limit = 3},
                              .fetches_waiting = 4});

  EXPECT_EQ(json::string_at(document, {"metadata", "name"}), "hangar");
  EXPECT_EQ(json::string_at(document, {"metadata", "namespace"}), "team");
  EXPECT_EQ(json::dump(*json::find(document, {"status", "guestMemory"})),
            R"({"used":10,"limit":20,"policy":"a"})");
  EXPECT_EQ(json::dump(*json::find(document, {"status", "guestDisk"})), R"({"used":5,"limit":6})");
  EXPECT_EQ(json::dump(*json::find(document, {"status", "moduleDisk"})),
            R"({"used":9,"limit":10,"policy":"a"})");
  EXPECT_EQ(json::dump(*json::find(document, {"status", "output"})),
            R"({"used":7,"limit":8,"policy":"a"})");
  EXPECT_EQ(json::dump(*json::find(document, {"status", "operators"})),
            R"({"used":3,"awake":1,"asleep":2})");
  EXPECT_EQ(json::dump(*json::find(document, {"status", "flights"})), R"({"used":4})");
  EXPECT_EQ(json::dump(*json::find(document, {"status", "feedMemory"})),
            R"({"used":11,"limit":12})");
  EXPECT_EQ(json::dump(*json::find(document, {"status", "answerMemory"})),
            R"({"used":13,"limit":14})");
  EXPECT_EQ(json::dump(*json::find(document, {"status", "fetches"})),
            R"({"used":1,"limit":3,"waiting":4})");
  EXPECT_EQ(json::dump(*json::find(document, {"status", "policies"})), R"(["a"])");
}

TEST(UsagePlan, WritesWhatChangedAndNotMoreOftenThanNowAndThen) {
  const auto with_operators = [](std::uint64_t count) -> Documents {
    return {{"a", usage_document("a", {.operators = {.used = count}})}};
  };
  UsagePlan plan;
  EXPECT_EQ(write_all(plan, with_operators(1), kNow), 1U);
  EXPECT_EQ(write_all(plan, with_operators(2), kNow + kUsageInterval / 2), 0U) << "too early";
  EXPECT_EQ(write_all(plan, with_operators(1), kNow + kUsageInterval), 0U) << "as it was";
  EXPECT_EQ(write_all(plan, with_operators(2), kNow + kUsageInterval), 1U);
}

TEST(UsagePlan, WritesWhatMovesByItselfLessOften) {
  UsagePlan plan;
  EXPECT_EQ(write_all(plan, of("a", 1), kNow), 1U);
  EXPECT_EQ(write_all(plan, of("a", 2), kNow + kUsageInterval), 0U);
  EXPECT_EQ(write_all(plan, of("a", 2), kNow + kUsageAmountInterval), 1U);
}

TEST(UsagePlan, DeletesTheObjectOfANamespaceThatUsesNothingAnyMore) {
  UsagePlan plan;
  EXPECT_EQ(write_all(plan, of("a", 1), kNow), 1U);

  const Instant gone = kNow + kUsageInterval;
  EXPECT_TRUE(plan.look({}, gone).empty()) << "it may be back";
  const auto due = plan.look({}, gone + kUsageGone);
  ASSERT_EQ(due.size(), 1U);
  EXPECT_TRUE(due.front().document.is_null());
  plan.done(due.front(), gone + kUsageGone);
  EXPECT_TRUE(plan.look({}, gone + 2 * kUsageGone).empty());
}

TEST(UsagePlan, DeletesWhatAnEarlierHostLeft) {
  UsagePlan plan;
  plan.found("old");
  plan.found("a");

  const auto first = plan.look(of("a", 1), kNow);
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first.front().namespace_name, "a") << "not known to be as it should be";
  plan.done(first.front(), kNow);

  const auto due = plan.look(of("a", 1), kNow + kUsageGone);
  ASSERT_EQ(due.size(), 1U);
  EXPECT_EQ(due.front().namespace_name, "old");
  EXPECT_TRUE(due.front().document.is_null());
}

TEST(UsagePlan, KeepsTheObjectOfANamespaceThatIsBackSoon) {
  UsagePlan plan;
  EXPECT_EQ(write_all(plan, of("a", 1), kNow), 1U);
  EXPECT_TRUE(plan.look({}, kNow + kUsageInterval).empty());
  EXPECT_TRUE(plan.look(of("a", 1), kNow + kUsageInterval + kUsageGone / 2).empty());
  EXPECT_TRUE(plan.look({}, kNow + kUsageInterval + kUsageGone).empty());
}

TEST(UsagePlan, WritesASmallChangeNowAndThen) {
  UsagePlan plan;
  EXPECT_EQ(write_all(plan, of("a", 1000), kNow), 1U);
  EXPECT_EQ(write_all(plan, of("a", 1050), kNow + kUsageInterval), 0U);
  EXPECT_EQ(write_all(plan, of("a", 1050), kNow + kUsageRefresh), 1U);
}

TEST(UsageChange, IsMuchForWhatPeopleDoAndLittleForWhatMovesByItself) {
  const auto change = [](const Usage& before, const Usage& after) {
    return usage_change(usage_document("team", before), usage_document("team", after));
  };
  const Usage before{.policies = {"a"},
                     .guest_memory = {.used = 50, .limit = 1000},
                     .operators = {.used = 100, .limit = 1000},
                     .operators_asleep = 100};

  EXPECT_EQ(change(before, before), UsageChange::None);
  Usage after = before;
  after.guest_memory.used = 150;
  EXPECT_EQ(change(before, after), UsageChange::Little) << "a tenth of the limit";
  after.guest_memory.used = 151;
  EXPECT_EQ(change(before, after), UsageChange::Some);
  after = before;
  after.operators_asleep = 95;
  EXPECT_EQ(change(before, after), UsageChange::Little);
  after.operators_asleep = 85;
  EXPECT_EQ(change(before, after), UsageChange::Some);
  after.operators.used = 101;
  EXPECT_EQ(change(before, after), UsageChange::Much);
  after = before;
  after.flights = 1;
  EXPECT_EQ(change(before, after), UsageChange::Much);
  after = before;
  after.policies = {"b"};
  EXPECT_EQ(change(before, after), UsageChange::Much);
  after = before;
  after.guest_memory.limit = 1001;
  EXPECT_EQ(change(before, after), UsageChange::Much);
  after.guest_memory.limit.reset();
  EXPECT_EQ(change(before, after), UsageChange::Much);
}

TEST(UsagePlan, LeavesANamespaceAloneWhereItFailed) {
  UsagePlan plan;
  const auto due = plan.look(of("a", 1), kNow);
  ASSERT_EQ(due.size(), 1U);
  plan.failed(due.front(), kNow);

  EXPECT_EQ(write_all(plan, of("a", 1), kNow + kUsageInterval), 0U);
  EXPECT_EQ(write_all(plan, of("a", 1), kNow + kUsageRetry), 1U);
}

TEST(UsagePlan, ReachesAllOfManyNamespacesInTurn) {
  UsagePlan plan;
  std::set<std::string> written;
  const std::size_t count = 3 * kUsageWritesMax;
  for (int look = 0; look < 3; ++look) {
    Documents documents;
    for (std::size_t index = 0; index < count; ++index)
      documents.merge(of(fmt::format("n{:03}", index),
                         static_cast<std::uint64_t>(look)));  // All of them change at every look.
    const Instant now = kNow + look * kUsageInterval;
    const auto due = plan.look(documents, now);
    EXPECT_EQ(due.size(), kUsageWritesMax);
    for (const UsagePlan::Due& one : due) {
      written.insert(one.namespace_name);
      plan.done(one, now);
    }
  }
  EXPECT_EQ(written.size(), count);
}

}  // namespace
}  // namespace hangar::tenants
