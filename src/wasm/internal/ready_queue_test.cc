#include "wasm/internal/ready_queue.h"

#include "base/time.h"
#include "budget/consumer.h"
#include "io/cpu_time.h"
#include "io/loop.h"
#include "io/workers.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <latch>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::wasm::internal {
namespace {

using Place = ReadyQueue::Place;

// One worker that is blocked until all guests wait. The order in which it then takes them is
// recorded, with a letter for each module.
class ReadyQueueTest : public ::testing::Test {
 protected:
  ReadyQueueTest() {
    queue_.push(consumer("warden", 0), Place::Begun, nullptr, [this]() -> std::uint64_t {
      is_held_.count_down();
      may_go_on_.wait();
      return 0;
    });
    is_held_.wait();
  }

  // Each waiting guest is a separate consumer, as an operator is.
  static budget::Consumer consumer(std::string namespace_name, std::size_t number) {
    return {.tenant = budget::Tenant::of_namespace(std::move(namespace_name)),
            .name = std::to_string(number)};
  }

  void push(Place place, char module) {
    ++pushed_;
    queue_.push(consumer("team", pushed_), place,
                &modules_.at(static_cast<std::size_t>(module - 'a')),
                [this, module] { return take(module, 0); });
  }
  // Pushes a guest that runs `times` more slices, each of which uses `cost` nanoseconds.
  void push_of(const std::string& namespace_name, std::uint64_t cost, int times) {
    ++pushed_;
    push_again(consumer(namespace_name, pushed_), cost, times);
  }

  void push_new(std::string_view modules) {
    for (const char module : modules)
      push(Place::New, module);
  }

  // Uses that much: the workers measure it.
  std::uint64_t take(char letter, std::uint64_t cost) {
    const Duration until = io::thread_cpu_time() + std::chrono::nanoseconds(cost);
    while (cost > 0 && io::thread_cpu_time() < until) {
    }
    order_ += letter;
    if (order_.size() == pushed_) loop_.post([this] { is_done_ = true; });
    return cost;
  }

  void push_again(const budget::Consumer& whose, std::uint64_t cost, int times) {
    queue_.push(whose, Place::Yielded, nullptr, [this, whose, cost, times] {
      if (times > 0) {
        ++pushed_;
        push_again(whose, cost, times - 1);
      }
      return take(whose.tenant.namespace_name().front(), cost);
    });
  }

  std::string order() {
    may_go_on_.count_down();
    loop_.run_until([this] { return is_done_; });
    return order_;
  }

  io::Loop loop_;
  std::array<char, 26> modules_{};
  std::string order_;
  std::size_t pushed_ = 0;  // All are pushed before the worker continues.
  bool is_done_ = false;
  std::latch is_held_{1};
  std::latch may_go_on_{1};
  io::Workers workers_{loop_, 1};
  ReadyQueue queue_{workers_};
};

TEST_F(ReadyQueueTest, RunsOfOneModuleComeAfterEachOther) {
  push_new("abcabcabc");

  EXPECT_EQ(order(), "aaabbbccc");
}

TEST_F(ReadyQueueTest, AModuleWithManyRunsMakesRoomForWhoHasWaitedForLongest) {
  push_new("aaaaabaaaaaaaaaaaaaaac");

  EXPECT_EQ(order(), "aaaaaaaabaaaaaaaaaaaac");
}

TEST_F(ReadyQueueTest, TheOldestGoesOnWhenItIsOfTheSameModule) {
  push_new("aaaaaaaaaab");

  EXPECT_EQ(order(), "aaaaaaaaaab");
}

TEST_F(ReadyQueueTest, WhoHasBegunComesFirst) {
  push_new("aba");
  push(Place::Begun, 'c');
  push(Place::Begun, 'a');

  EXPECT_EQ(order(), "caaab");
}

TEST_F(ReadyQueueTest, WhoHasUsedUpASliceHasNoAdvantage) {
  push_new("a");
  push(Place::Yielded, 'b');
  push(Place::Yielded, 'a');
  push_new("b");
  push(Place::Yielded, 'b');

  EXPECT_EQ(order(), "ababb");
}

// Seventy guests that burn all their time, and a neighbour that does little and often.
TEST_F(ReadyQueueTest, ANeighbourOfManyBurnersHasItsTurnNext) {
  for (int burner = 0; burner < 70; ++burner)
    push_of("burners", 20'000'000, 0);
  push_of("neighbour", 100, 9);

  const std::string order = this->order();

  ASSERT_EQ(order.size(), 80U);
  // The guest that came first, then the neighbour, which has used almost nothing.
  EXPECT_EQ(order.substr(0, 11), "bnnnnnnnnnn");
}

TEST_F(ReadyQueueTest, NamespacesHaveTheirTurnsByTheTimeThatTheyUse) {
  // Long enough that what a busy machine adds to a turn is small beside it.
  push_of("x", 30'000'000, 5);
  push_of("y", 81'000'000, 1);
  push_of("z", 36'000'000, 5);

  EXPECT_EQ(order(), "xyzxzxzyxzxzxz");
}

TEST_F(ReadyQueueTest, SlicesAreShortWhileAnotherTenantWaits) {
  const budget::Tenant team = budget::Tenant::of_namespace("team");
  EXPECT_EQ(queue_.slice(team), std::nullopt);
  push_new("a");
  const auto among_own = queue_.slice(team);
  const auto among_others = queue_.slice(budget::Tenant::of_namespace("other"));
  ASSERT_TRUE(among_own && among_others);
  EXPECT_LT(*among_others, *among_own);

  EXPECT_EQ(order(), "a");
}

TEST_F(ReadyQueueTest, AGuestAloneYieldsToOtherWorkOfTheWorkers) {
  const budget::Tenant team = budget::Tenant::of_namespace("team");
  ASSERT_EQ(queue_.slice(team), std::nullopt);
  ++pushed_;
  workers_.submit(budget::Consumer::of_host("other work"), [this] { take('w', 0); });

  EXPECT_TRUE(queue_.slice(team).has_value());

  EXPECT_EQ(order(), "w");
}

TEST_F(ReadyQueueTest, AGuestYieldsToOtherWorkOfItsOwnTenant) {
  push_new("a");
  const auto among_own = queue_.slice(budget::Tenant::of_namespace("team"));
  ++pushed_;
  workers_.submit(consumer("team", 7), [this] { take('w', 0); });
  const auto beside_work = queue_.slice(budget::Tenant::of_namespace("team"));

  ASSERT_TRUE(among_own && beside_work);
  EXPECT_LT(*beside_work, *among_own);

  EXPECT_EQ(order(), "aw");
}

TEST_F(ReadyQueueTest, GuestsAndOtherWorkOfATenantAreCountedTogether) {
  push_of("burners", 6'000'000, 3);
  for (int job = 0; job < 3; ++job) {
    ++pushed_;
    workers_.submit(consumer("burners", 7), [this] { take('b', 6'000'000); });
  }
  push_of("neighbour", 10'500'000, 3);

  EXPECT_EQ(order(), "bnbnbbnbbnb");
}

TEST_F(ReadyQueueTest, GuestsThatWaitDoNotHoldUpOtherWorkOfTheWorkers) {
  push_new("aaaa");
  ++pushed_;
  workers_.submit(budget::Consumer::of_host("other work"), [this] { take('w', 0); });

  EXPECT_EQ(order(), "waaaa");
}

}  // namespace
}  // namespace hangar::wasm::internal
