#include "wasm/internal/ready_queue.h"

#include "io/loop.h"
#include "io/workers.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <latch>
#include <string>
#include <string_view>

namespace hangar::wasm::internal {
namespace {

using Place = ReadyQueue::Place;

// One worker that is held until everything waits. What it takes then is written down: a letter per
// module.
class ReadyQueueTest : public ::testing::Test {
 protected:
  ReadyQueueTest() {
    queue_.push(Place::Begun, nullptr, [this] {
      is_held_.count_down();
      may_go_on_.wait();
    });
    is_held_.wait();
  }

  void push(Place place, char module) {
    ++pushed_;
    queue_.push(place, &modules_.at(static_cast<std::size_t>(module - 'a')), [this, module] {
      order_ += module;
      if (order_.size() == pushed_) loop_.post([this] { is_done_ = true; });
    });
  }

  void push_new(std::string_view modules) {
    for (const char module : modules)
      push(Place::New, module);
  }

  std::string order() {
    may_go_on_.count_down();
    loop_.run_until([this] { return is_done_; });
    return order_;
  }

  io::Loop loop_;
  std::array<char, 26> modules_{};
  std::string order_;
  std::size_t pushed_ = 0;  // All of them before the worker goes on.
  bool is_done_ = false;
  std::latch is_held_{1};
  std::latch may_go_on_{1};
  io::Workers workers_{loop_, 1};
  ReadyQueue queue_{workers_};
};

TEST_F(ReadyQueueTest, RunsOfOneModuleComeAfterEachOther) {
  push_new("abcabcabc");
  EXPECT_TRUE(queue_.is_contended());

  EXPECT_EQ(order(), "aaabbbccc");
  EXPECT_FALSE(queue_.is_contended());
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

}  // namespace
}  // namespace hangar::wasm::internal
