#include "budget/beneficiaries.h"

#include "base/result.h"
#include "budget/consumer.h"
#include "budget/fair_slots.h"
#include "io/loop.h"
#include "io/task.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <list>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

namespace hangar::budget {
namespace {

Consumer of(std::string namespace_name) {
  return {.tenant = Tenant::of_namespace(std::move(namespace_name)), .name = "module"};
}

class BeneficiariesTest : public ::testing::Test {
 protected:
  using Slot = FairSlots::Slot;

  FairSlots& make(FairSlots::Options options) { return made_.emplace_back(loop_, options); }

  void run_ready() {
    bool done = false;
    loop_.post([&] { loop_.post([&] { done = true; }); });
    loop_.run_until([&] { return done; });
  }
  // Takes a slot at once.
  std::optional<Slot> hold(FairSlots& slots, std::string namespace_name) {
    std::optional<Slot> held;
    loop_.spawn(
        [](FairSlots& slots, Consumer consumer, std::optional<Slot>& held) -> io::Task<void> {
          Result<Slot> slot = co_await slots.acquire(std::move(consumer), {}, {});
          if (slot) held.emplace(*std::move(slot));
        }(slots, of(std::move(namespace_name)), held));
    run_ready();
    return held;
  }
  void begin(FairSlots& slots, const Beneficiaries& beneficiaries) {
    loop_.spawn([](BeneficiariesTest& self, FairSlots& slots,
                   Beneficiaries beneficiaries) -> io::Task<void> {
      self.result_.emplace(co_await beneficiaries.acquire(slots, {}, self.stop_.get_token()));
    }(*this, slots, beneficiaries));
    run_ready();
  }
  [[nodiscard]] bool has_slot() const { return result_ && *result_; }

  io::Loop loop_;
  std::list<FairSlots> made_;
  std::stop_source stop_;
  std::optional<Result<Slot>> result_;
};

TEST_F(BeneficiariesTest, TheFirstTurnOfAnyOfThemIsTheWorks) {
  FairSlots& slots = make({.slots = 4, .slots_per_tenant_max = 1});
  const std::optional<Slot> busy = hold(slots, "busy");
  const Beneficiaries both(of("busy"));

  begin(slots, both);
  EXPECT_FALSE(has_slot()) << "the namespace has its slot already";
  both.add(of("idle"));
  run_ready();

  EXPECT_TRUE(has_slot());
  EXPECT_EQ(slots.held_count(of("idle").tenant), 1U);
  EXPECT_EQ(slots.waiting_count(), 0U) << "the other one waits no more";
}

TEST_F(BeneficiariesTest, OneSlotIsTakenHoweverManyAreFree) {
  FairSlots& slots = make({.slots = 8});
  const Beneficiaries both(of("a"));
  both.add(of("b"));
  both.add(of("b"));
  EXPECT_EQ(both.all().size(), 2U);

  begin(slots, both);

  ASSERT_TRUE(has_slot());
  EXPECT_EQ(slots.held_count(of("a").tenant) + slots.held_count(of("b").tenant), 1U);
  result_.reset();
  EXPECT_EQ(slots.held_count(of("a").tenant) + slots.held_count(of("b").tenant), 0U);
}

TEST_F(BeneficiariesTest, AFullLineOfOneIsNotTheEndOfTheOthers) {
  FairSlots& slots = make({.slots = 2, .slots_per_tenant_max = 1, .waiting_per_tenant_max = 1});
  const std::optional<Slot> one = hold(slots, "full");
  std::optional<Slot> other = hold(slots, "other");
  ASSERT_TRUE(other);
  loop_.spawn([](FairSlots& slots, std::stop_token stop) -> io::Task<void> {
    EXPECT_FALSE((co_await slots.acquire(of("full"), {}, std::move(stop))));
  }(slots, stop_.get_token()));
  const Beneficiaries both(of("full"));
  both.add(of("other"));

  begin(slots, both);
  EXPECT_FALSE(result_) << "one of them waits";
  other.reset();
  run_ready();

  EXPECT_TRUE(has_slot());
  stop_.request_stop();
  run_ready();
}

TEST_F(BeneficiariesTest, IfAllLinesAreFullItSaysSo) {
  FairSlots& slots = make({.slots = 1, .waiting_per_tenant_max = 0});
  const std::optional<Slot> busy = hold(slots, "busy");
  const Beneficiaries both(of("a"));
  both.add(of("b"));

  begin(slots, both);

  ASSERT_TRUE(result_ && !*result_);
  EXPECT_EQ(result_->error().kind(), ErrorKind::LimitExceeded);
}

TEST_F(BeneficiariesTest, StoppingEndsTheWaitOfAll) {
  FairSlots& slots = make({.slots = 1});
  const std::optional<Slot> busy = hold(slots, "busy");
  const Beneficiaries both(of("a"));
  both.add(of("b"));
  begin(slots, both);
  EXPECT_EQ(slots.waiting_count(), 2U);

  stop_.request_stop();
  run_ready();
  run_ready();

  ASSERT_TRUE(result_ && !*result_);
  EXPECT_EQ(result_->error().kind(), ErrorKind::Cancelled);
  EXPECT_EQ(slots.waiting_count(), 0U);
  EXPECT_EQ(loop_.spawned_count(), 0U);
}

}  // namespace
}  // namespace hangar::budget
