#include "budget/fair_slots.h"

#include "base/result.h"
#include "budget/consumer.h"
#include "budget/rates.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/run.h"
#include "io/task.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hangar::budget {
namespace {

class FairSlotsTest : public ::testing::Test {
 protected:
  struct Work {
    explicit Work(io::Loop& loop) : end(loop) {}
    io::OneShot<bool> end;
    std::stop_source stop;
  };

  // Holds a slot until the test ends it.
  Work& begin(FairSlots& slots, Consumer consumer, std::string name, std::uint64_t more_cost = 0) {
    Work& work = works_.emplace_back(loop_);
    loop_.spawn(hold(slots, std::move(consumer), std::move(name), more_cost, work));
    return work;
  }
  Work& begin(FairSlots& slots, std::string namespace_name, std::uint64_t more_cost = 0) {
    Consumer consumer{.tenant = Tenant::of_namespace(namespace_name), .name = "operator/a"};
    return begin(slots, std::move(consumer), std::move(namespace_name), more_cost);
  }

  void run_ready() {
    bool done = false;
    loop_.post([&] { loop_.post([&] { done = true; }); });
    loop_.run_until([&] { return done; });
  }
  void end(Work& work) {
    work.end.set(true);
    run_ready();
  }
  // Ends all work, in the order in which it began.
  std::string end_all() {
    for (Work& work : works_)
      work.end.set(true);
    while (loop_.spawned_count() > 0)
      run_ready();
    return began_;
  }

  io::Loop loop_;
  std::list<Work> works_;
  std::string began_;
  std::vector<ErrorKind> refused_;

 private:
  io::Task<void> hold(FairSlots& slots, Consumer consumer, std::string name,
                      std::uint64_t more_cost, Work& work) {
    auto slot = co_await slots.acquire(std::move(consumer), {}, work.stop.get_token());
    if (!slot) {
      refused_.push_back(slot.error().kind());
      co_return;
    }
    began_ += name;
    co_await work.end.wait();
    slot->charge(more_cost);
  }
};

TEST_F(FairSlotsTest, ABrakedTenantWaitsUntilItsRateAllowsItAndOthersGoOn) {
  Rates rates;
  std::optional<RateLimit> limit = RateLimit{.millicores = 1};
  rates.limit_tenants([&](const Tenant& tenant) {
    return tenant == Tenant::of_namespace("a") ? limit : std::nullopt;
  });
  FairSlots slots(loop_, {.slots = 8});
  slots.brake(rates);
  rates.charge(Tenant::of_namespace("a"), 60'000'000'000, io::Loop::now());
  begin(slots, "a");
  begin(slots, "b");
  run_ready();
  EXPECT_EQ(began_, "b");
  EXPECT_EQ(slots.waiting_count(), 1U);

  limit.reset();
  loop_.run_until([&] { return slots.waiting_count() == 0; });
  run_ready();

  EXPECT_EQ(end_all(), "ba");
}

TEST_F(FairSlotsTest, AStopEndsTheWaitOfABrakedTenant) {
  Rates rates;
  rates.limit_tenants([](const Tenant&) { return std::optional(RateLimit{.millicores = 1}); });
  FairSlots slots(loop_, {.slots = 8});
  slots.brake(rates);
  rates.charge(Tenant::of_namespace("a"), 60'000'000'000, io::Loop::now());
  Work& work = begin(slots, "a");
  run_ready();
  ASSERT_EQ(slots.waiting_count(), 1U);

  work.stop.request_stop();
  run_ready();

  EXPECT_EQ(refused_, std::vector{ErrorKind::Cancelled});
  EXPECT_EQ(slots.waiting_count(), 0U);
}

TEST_F(FairSlotsTest, ATenantWithABoundOfItsOwnHoldsNoMore) {
  FairSlots slots(loop_, {.slots = 8, .slots_per_tenant_max = 3});
  std::size_t most = 1;
  slots.limit_tenants([&most](const Tenant& tenant) {
    return tenant.namespace_name() == "a" ? most : std::size_t{3};
  });
  Work& first = begin(slots, "a");
  for (int index = 0; index < 3; ++index)
    begin(slots, "a");
  for (int index = 0; index < 4; ++index)
    begin(slots, "b");
  run_ready();

  EXPECT_EQ(slots.held_count(Tenant::of_namespace("a")), 1U);
  EXPECT_EQ(slots.held_count(Tenant::of_namespace("b")), 3U) << "no more than all may";
  most = 2;
  end(first);
  EXPECT_EQ(slots.held_count(Tenant::of_namespace("a")), 2U) << "a bound counts from the next look";
  most = 0;
  (void)end_all();
  EXPECT_EQ(slots.held_count(Tenant::of_namespace("a")), 0U) << "one slot is always a tenant's";
}

TEST_F(FairSlotsTest, ATenantThatComesLateFindsASlotHoweverManyAnotherWants) {
  FairSlots slots(loop_, {.slots = 4});
  for (int index = 0; index < 10; ++index)
    begin(slots, "g");
  run_ready();
  EXPECT_EQ(began_, "gg");
  EXPECT_EQ(slots.held_count(Tenant::of_namespace("g")), 2U);

  begin(slots, "t");
  begin(slots, "u");
  run_ready();

  EXPECT_EQ(began_, "ggtu");
  EXPECT_EQ(slots.waiting_count(), 8U);
  EXPECT_EQ(end_all().size(), 12U);
  EXPECT_EQ(slots.waiting_count(), 0U);
}

TEST_F(FairSlotsTest, ASlotIsAheadOfThoseThatWaitAndHaveHadLess) {
  FairSlots slots(loop_, {.slots = 2});
  const auto take = [&](const std::string& namespace_name) {
    auto slot = io::run_to_end(
        loop_,
        slots.acquire({.tenant = Tenant::of_namespace(namespace_name), .name = "a"}, {}, {}));
    EXPECT_TRUE(slot.has_value());
    return std::move(slot).value();
  };
  FairSlots::Slot first = take("a");
  FairSlots::Slot second = take("b");
  first.charge(100);
  second.charge(10);
  EXPECT_FALSE(first.is_ahead()) << "of nobody";
  begin(slots, "a");
  begin(slots, "b");
  EXPECT_FALSE(first.is_ahead()) << "of b, which may hold one slot only";

  begin(slots, "c");

  EXPECT_TRUE(first.is_ahead());
  EXPECT_TRUE(second.is_ahead());
  {
    const FairSlots::Slot given_back = std::move(first);
  }
  run_ready();
  EXPECT_EQ(began_, "c");
  {
    const FairSlots::Slot given_back = std::move(second);
  }
  (void)end_all();
}

TEST_F(FairSlotsTest, ASingleSlotGoesRoundTheTenants) {
  FairSlots slots(loop_, {});
  for (int index = 0; index < 3; ++index)
    begin(slots, "g");
  begin(slots, "t");
  begin(slots, "u");

  EXPECT_EQ(end_all(), "gtugg");
}

TEST_F(FairSlotsTest, CostThatIsKnownLaterCounts) {
  FairSlots slots(loop_, {});
  for (int index = 0; index < 4; ++index) {
    begin(slots, "b", 2);
    begin(slots, "t");
  }

  EXPECT_EQ(end_all(), "btttbtbb");
}

TEST_F(FairSlotsTest, TheHostHasSlotsThatNobodyCanTake) {
  FairSlots slots(loop_, {.slots = 1, .host_slots = 1});
  begin(slots, "t");
  begin(slots, "u");
  run_ready();
  Work& first = begin(slots, {.tenant = Tenant::host(), .name = "lease"}, "H");
  begin(slots, {.tenant = Tenant::host(), .name = "lease"}, "I");
  run_ready();
  EXPECT_EQ(began_, "tH");

  end(first);
  EXPECT_EQ(began_, "tHI");

  EXPECT_EQ(end_all(), "tHIu");
}

TEST_F(FairSlotsTest, TheHostTakesOthersToo) {
  FairSlots slots(loop_, {.slots = 1, .host_slots = 1});
  for (const std::string name : {"H", "I", "J"})
    begin(slots, {.tenant = Tenant::host(), .name = "lease"}, name);
  begin(slots, "t");
  run_ready();

  EXPECT_EQ(began_, "HI");
  EXPECT_EQ(end_all(), "HIJt");
}

TEST_F(FairSlotsTest, OneTenantHasABoundOfItsOwn) {
  FairSlots slots(loop_, {.slots = 8, .slots_per_tenant_max = 1});
  begin(slots, "t");
  begin(slots, "t");
  run_ready();

  EXPECT_EQ(began_, "t");
  EXPECT_EQ(end_all(), "tt");
}

TEST_F(FairSlotsTest, RefusesThoseBeyondTheBound) {
  FairSlots slots(loop_, {.slots = 1, .waiting_per_tenant_max = 2});
  for (int index = 0; index < 4; ++index)
    begin(slots, "t");
  run_ready();

  EXPECT_EQ(refused_, std::vector{ErrorKind::LimitExceeded});
  EXPECT_EQ(end_all(), "ttt");
}

TEST_F(FairSlotsTest, AStopEndsTheWait) {
  FairSlots slots(loop_, {});
  begin(slots, "t");
  Work& stopped = begin(slots, "u");
  begin(slots, "v");
  run_ready();

  stopped.stop.request_stop();
  run_ready();

  EXPECT_EQ(refused_, std::vector{ErrorKind::Cancelled});
  EXPECT_EQ(end_all(), "tv");
}

// The new owner of a slot is stopped after the handover and before it resumes.
TEST_F(FairSlotsTest, AStopThatComesTooLateLosesNoSlot) {
  FairSlots slots(loop_, {});
  Work& first = begin(slots, "t");
  Work& stopped = begin(slots, "u");
  begin(slots, "v");
  run_ready();
  first.end.set(true);
  loop_.post([&] { stopped.stop.request_stop(); });

  EXPECT_EQ(end_all(), "tuv");
}

TEST_F(FairSlotsTest, OneThatIsStoppingBeginsNothing) {
  FairSlots slots(loop_, {});
  std::stop_source stop;
  stop.request_stop();
  bool is_cancelled = false;
  loop_.spawn([](FairSlots& of, std::stop_token token, bool& cancelled) -> io::Task<void> {
    const auto slot = co_await of.acquire({.tenant = Tenant::of_namespace("t"), .name = "a"}, {},
                                          std::move(token));
    cancelled = !slot && slot.error().kind() == ErrorKind::Cancelled;
  }(slots, stop.get_token(), is_cancelled));

  EXPECT_TRUE(is_cancelled);
}

}  // namespace
}  // namespace hangar::budget
