#include "wasm/internal/ready_queue.h"

#include "budget/consumer.h"
#include "io/loop.h"
#include "io/workers.h"

#include <gtest/gtest.h>

#include <array>
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

  // Each guest that waits is a consumer of its own, as an operator is.
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
  // Pushes a guest that runs `times` more slices, each of which uses `cost`.
  void push_of(const std::string& namespace_name, std::uint64_t cost, int times) {
    ++pushed_;
    push_again(consumer(namespace_name, pushed_), cost, times);
  }

  void push_new(std::string_view modules) {
    for (const char module : modules)
      push(Place::New, module);
  }

  std::uint64_t take(char letter, std::uint64_t cost) {
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
    push_of("burners", 20'000, 9);
  push_of("neighbour", 100, 9);

  const std::string order = this->order();

  ASSERT_EQ(order.size(), 710U);
  // The guest that came first, then the neighbour, which has used almost nothing.
  EXPECT_EQ(order.substr(0, 11), "bnnnnnnnnnn");
}

TEST_F(ReadyQueueTest, BurnersOfOneNamespaceHaveTheirTurns) {
  push_of("x", 1000, 5);
  push_of("y", 3000, 1);
  push_of("z", 1000, 5);

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

// They are not all in the queue of the workers.
TEST_F(ReadyQueueTest, GuestsThatWaitDoNotHoldUpOtherWorkOfTheWorkers) {
  push_new("aaaa");
  ++pushed_;
  workers_.submit([this] { take('w', 0); });

  EXPECT_EQ(order(), "waaaa");
}

}  // namespace
}  // namespace hangar::wasm::internal
