#include "modules/load_slots.h"

#include "base/limits.h"
#include "base/result.h"
#include "budget/consumer.h"
#include "io/loop.h"
#include "io/task.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

namespace hangar::modules {
namespace {

constexpr std::uint64_t kSmall = 4 * limits::kMiB;
constexpr std::uint64_t kLarge = 50 * limits::kMiB;

class LoadSlotsTest : public ::testing::Test {
 protected:
  // Holds a slot until the test releases it.
  void begin(std::string name, const std::string& namespace_name, std::uint64_t bytes,
             std::stop_token stop = {}) {
    loop_.spawn(hold(std::move(name),
                     {.tenant = budget::Tenant::of_namespace(namespace_name), .name = "module"},
                     bytes, std::move(stop)));
    run_ready();
  }
  void release(const std::string& name) {
    ASSERT_EQ(held_.erase(name), 1U) << name;
    run_ready();
  }
  void run_ready() {
    for (int turn = 0; turn < 10; ++turn) {
      bool done = false;
      loop_.post([&done] { done = true; });
      loop_.run_until([&done] { return done; });
    }
  }

  io::Loop loop_;
  LoadSlots slots_{loop_};
  std::map<std::string, std::shared_ptr<LoadSlots::Slot>> held_;
  std::string began_;
  std::string refused_;

 private:
  io::Task<void> hold(std::string name, budget::Consumer consumer, std::uint64_t bytes,
                      std::stop_token stop) {
    Result<std::shared_ptr<LoadSlots::Slot>> slot =
        co_await slots_.acquire(std::move(consumer), bytes, std::move(stop));
    if (!slot) {
      refused_ += name;
      co_return;
    }
    began_ += name;
    held_[name] = *std::move(slot);
  }
};

TEST_F(LoadSlotsTest, OneLargeModuleAtATimeAndSmallOnesBesideIt) {
  begin("A", "a", kLarge);
  begin("B", "b", kLarge);
  begin("c", "c", kSmall);
  begin("d", "d", kSmall);
  EXPECT_EQ(began_, "Acd");

  release("c");
  EXPECT_EQ(began_, "Acd");
  release("A");
  EXPECT_EQ(began_, "AcdB");
}

TEST_F(LoadSlotsTest, TheSmallestNeedNone) {
  for (int index = 0; index < 9; ++index)
    begin(std::to_string(index), "a", limits::kMiB);
  EXPECT_EQ(began_, "012345678");
}

TEST_F(LoadSlotsTest, ANamespaceLeavesHalfOfTheSmallSlotsToOthers) {
  begin("1", "a", kSmall);
  begin("2", "a", kSmall);
  begin("3", "a", kSmall);
  begin("4", "b", kSmall);
  EXPECT_EQ(began_, "124");

  release("1");
  EXPECT_EQ(began_, "1243");
}

TEST_F(LoadSlotsTest, NamespacesTakeTurnsAndTheSmallerModulesOfEachGoFirst) {
  begin("1", "a", kLarge);
  begin("4", "a", 4 * kLarge);
  begin("2", "a", kLarge);
  begin("b", "b", kLarge);

  release("1");
  EXPECT_EQ(began_, "1b");
  release("b");
  EXPECT_EQ(began_, "1b2");
  release("2");
  EXPECT_EQ(began_, "1b24");
}

TEST_F(LoadSlotsTest, ASlotMayBeReleasedOnAnyThread) {
  begin("A", "a", kLarge);
  begin("B", "b", kLarge);

  std::jthread([slot = std::move(held_["A"])] {}).join();

  loop_.run_until([this] { return began_ == "AB"; });
}

TEST_F(LoadSlotsTest, ASlotIsReleasedOnce) {
  begin("A", "a", kLarge);
  begin("B", "b", kLarge);
  begin("C", "c", kLarge);

  held_["A"]->release();
  held_["A"]->release();
  release("A");
  EXPECT_EQ(began_, "AB");

  release("B");
  EXPECT_EQ(began_, "ABC");
}

TEST_F(LoadSlotsTest, AStopEndsTheWait) {
  std::stop_source stop;
  begin("A", "a", kLarge);
  begin("B", "b", kLarge, stop.get_token());

  stop.request_stop();
  run_ready();

  EXPECT_EQ(refused_, "B");
  begin("C", "c", kLarge);
  release("A");
  EXPECT_EQ(began_, "AC");
}

}  // namespace
}  // namespace hangar::modules
