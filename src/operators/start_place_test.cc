#include "operators/start_place.h"

#include "base/result.h"
#include "budget/consumer.h"
#include "budget/fair_slots.h"
#include "io/loop.h"
#include "io/run.h"
#include "io/task.h"
#include "io/virtual_time.h"
#include "operators/limits.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

namespace hangar::operators {
namespace {

constexpr std::uint64_t kSmall = limits::kLargeGuestBytes - 1;
constexpr std::uint64_t kLarge = limits::kLargeGuestBytes;

class StartPlaceTest : public testing::Test {
 protected:
  static budget::Consumer consumer(std::string namespace_name) {
    return {.tenant = budget::Tenant::of_namespace(std::move(namespace_name)),
            .name = "operator/mirror"};
  }
  Result<std::unique_ptr<StartPlace>> acquire(std::string namespace_name, std::uint64_t bytes) {
    return io::run_to_end(
        loop_, StartPlace::acquire({.loop = loop_, .all = all_, .large = large_},
                                   consumer(std::move(namespace_name)), bytes, stop_.get_token()));
  }
  // Takes a place and gives it back at once.
  io::Task<void> pass(budget::FairSlots& slots) {
    const auto slot = co_await slots.acquire(consumer("other"), {}, stop_.get_token());
    passed_ += slot ? 1 : 0;
  }
  io::Task<void> fail_to_acquire() {
    const Result<std::unique_ptr<StartPlace>> place =
        co_await StartPlace::acquire({.loop = loop_, .all = all_, .large = large_},
                                     consumer("stopped"), kLarge, stop_.get_token());
    EXPECT_FALSE(place);
  }
  void run_all() {
    loop_.run_until([this] { return loop_.spawned_count() == 0; });
  }

  io::VirtualTime time_{io::VirtualTime::Options{.seed = 1}};
  io::Loop loop_;
  budget::FairSlots all_{loop_, {.slots = 1}};
  budget::FairSlots large_{loop_, {.slots = 1}};
  std::stop_source stop_;
  int passed_ = 0;
};

TEST_F(StartPlaceTest, ALargeGuestHoldsBothUntilItsPlaceEnds) {
  Result<std::unique_ptr<StartPlace>> place = acquire("n", kLarge);
  ASSERT_TRUE(place);
  EXPECT_TRUE((*place)->is_held());
  loop_.spawn(pass(all_));
  loop_.spawn(pass(large_));
  loop_.run_until([this] { return all_.waiting_count() + large_.waiting_count() == 2; });
  EXPECT_EQ(passed_, 0);

  place->reset();
  run_all();
  EXPECT_EQ(passed_, 2);
}

TEST_F(StartPlaceTest, ASmallGuestHoldsNoneOfTheLarge) {
  const Result<std::unique_ptr<StartPlace>> place = acquire("n", kSmall);
  ASSERT_TRUE(place);
  loop_.spawn(pass(large_));
  run_all();
  EXPECT_EQ(passed_, 1);
  EXPECT_TRUE((*place)->is_held());
}

TEST_F(StartPlaceTest, AGuestThatIsNeverIdleGivesUpBothAfterTheWait) {
  const Result<std::unique_ptr<StartPlace>> place = acquire("n", kLarge);
  ASSERT_TRUE(place);
  loop_.spawn(pass(all_));
  loop_.spawn(pass(large_));
  run_all();
  EXPECT_EQ(passed_, 2);
  EXPECT_FALSE((*place)->is_held());
}

TEST_F(StartPlaceTest, ALargeGuestThatIsStoppedInLineHoldsNothing) {
  Result<std::unique_ptr<StartPlace>> first = acquire("n", kSmall);
  ASSERT_TRUE(first);
  loop_.spawn(fail_to_acquire());
  loop_.run_until([this] { return all_.waiting_count() == 1; });
  stop_.request_stop();
  run_all();
  first->reset();

  stop_ = std::stop_source();
  loop_.spawn(pass(all_));
  loop_.spawn(pass(large_));
  run_all();
  EXPECT_EQ(passed_, 2);
}

}  // namespace
}  // namespace hangar::operators
