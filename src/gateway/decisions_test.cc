#include "gateway/decisions.h"

#include "base/time.h"
#include "gateway/limits.h"
#include "io/loop.h"
#include "kube/client.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hangar::gateway {
namespace {

constexpr Instant kNow{};
constexpr std::chrono::seconds kAge{10};

class DecisionsTest : public ::testing::Test {
 protected:
  static Question question(const std::string& tenant, std::size_t index) {
    return {.identity = kube::service_account(tenant, "guest"),
            .attributes = {.verb = "get", .resource = "things", .name = std::to_string(index)}};
  }
  DecisionPtr decided(Instant at) {
    auto decision = std::make_shared<Decision>(loop_);
    decision->state = Decision::State::Decided;
    decision->until = at + kAge;
    return decision;
  }

  io::Loop loop_;
  Decisions decisions_;
};

TEST_F(DecisionsTest, AreBelievedForAWhile) {
  const DecisionPtr decision = decided(kNow);
  EXPECT_TRUE(decisions_.keep(question("a", 1), decision, kNow));

  EXPECT_EQ(decisions_.find(question("a", 1), kNow), decision);
  EXPECT_EQ(decisions_.find(question("a", 2), kNow), nullptr);
  EXPECT_EQ(decisions_.find(question("b", 1), kNow), nullptr);
  EXPECT_EQ(decisions_.find(question("a", 1), kNow + kAge), nullptr);
  decisions_.forget_old(kNow + kAge);
  EXPECT_EQ(decisions_.size(), 0U);
}

TEST_F(DecisionsTest, OfATenantAreBoundedAndPushNobodyElsesOut) {
  const DecisionPtr other = decided(kNow);
  EXPECT_TRUE(decisions_.keep(question("victim", 1), other, kNow));
  for (std::size_t index = 0; index < 2 * limits::kGatewayDecisionsMax; ++index) {
    EXPECT_TRUE(decisions_.keep(question("flood", index), decided(kNow), kNow));
    ASSERT_LE(decisions_.size(), kDecisionsPerTenantMax + 1);
  }
  EXPECT_EQ(decisions_.find(question("victim", 1), kNow), other);
}

TEST_F(DecisionsTest, OfLongQuestionsAreNotKept) {
  EXPECT_TRUE(is_worth_remembering(question("a", 1)));
  Question long_selector = question("a", 1);
  long_selector.attributes.label_selector = std::string(1024, 'x');
  EXPECT_FALSE(is_worth_remembering(long_selector));

  const auto is_kept_for = [](kube::Identity identity) {
    Question asked = question("a", 1);
    asked.identity = std::move(identity);
    return is_worth_remembering(asked);
  };
  EXPECT_TRUE(
      is_kept_for({.user = "alice", .groups = std::vector<std::string>(50, "a-usual-group")}));
  EXPECT_FALSE(is_kept_for({.user = std::string(5000, 'x')}));
  EXPECT_FALSE(is_kept_for({.user = "alice", .groups = std::vector<std::string>(5000)}));
  EXPECT_FALSE(is_kept_for({.user = "alice", .extra = {{std::string(5000, 'x'), {}}}}));
  EXPECT_FALSE(
      is_kept_for({.user = "alice", .extra = {{"scope", {"read", std::string(5000, 'x')}}}}));
}

TEST_F(DecisionsTest, ThatSomebodyWaitsForStay) {
  for (std::size_t index = 0; index < kDecisionsPerTenantMax; ++index)
    EXPECT_TRUE(decisions_.keep(question("a", index), std::make_shared<Decision>(loop_), kNow));
  EXPECT_FALSE(decisions_.keep(question("a", kDecisionsPerTenantMax), decided(kNow), kNow));
  EXPECT_NE(decisions_.find(question("a", 0), kNow + kAge), nullptr);
  decisions_.forget_old(kNow + kAge);
  EXPECT_EQ(decisions_.size(), kDecisionsPerTenantMax);
}

TEST_F(DecisionsTest, AreDroppedOnlyWhileTheyAreTheNewest) {
  const DecisionPtr first = decided(kNow);
  const DecisionPtr second = decided(kNow);
  EXPECT_TRUE(decisions_.keep(question("a", 1), first, kNow));
  EXPECT_TRUE(decisions_.keep(question("a", 1), second, kNow));
  EXPECT_EQ(decisions_.size(), 1U);

  decisions_.drop(question("a", 1), first);
  EXPECT_EQ(decisions_.find(question("a", 1), kNow), second);
  decisions_.drop(question("a", 1), second);
  EXPECT_EQ(decisions_.size(), 0U);
}

}  // namespace
}  // namespace hangar::gateway
