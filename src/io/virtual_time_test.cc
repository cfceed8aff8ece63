#include "io/virtual_time.h"

#include "base/consumer.h"
#include "base/random.h"
#include "base/result.h"
#include "base/time.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/run.h"
#include "io/task.h"
#include "io/workers.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hangar::io {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Clocks = VirtualTime::Process::Clocks;

TEST(VirtualTime, AnHourPassesAtOnceAndIsAnHour) {
  VirtualTime time({.seed = 1});
  Loop loop;
  const Instant began = Loop::now();
  const WallTime wall_began = Loop::wall_now();

  const Result<> slept = run_to_end(loop, loop.sleep(hours(1), std::stop_token()));

  ASSERT_TRUE(slept.has_value());
  EXPECT_GE(Loop::now() - began, hours(1));
  EXPECT_LT(Loop::now() - began, hours(1) + seconds(1));
  EXPECT_GE(Loop::wall_now() - wall_began, hours(1));
}

TEST(VirtualTime, ALoopRunsWhatIsPostedInOrderAndTimersInTime) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    VirtualTime time({.seed = seed});
    Loop loop;
    std::string order;
    const auto late = loop.after(seconds(2), [&] { order += 'e'; });
    const auto early = loop.after(seconds(1), [&] { order += 'd'; });
    auto never = loop.after(milliseconds(1500), [&] { order += 'x'; });
    loop.post([&] { order += 'a'; });
    loop.post([&] {
      order += 'b';
      loop.post([&] { order += 'c'; });
      never.cancel();
    });

    while (time.step()) {
    }

    EXPECT_EQ(order, "abcde") << "seed " << seed;
  }
}

TEST(VirtualTime, ACancelledTimerDoesNotMoveTheClock) {
  VirtualTime time({.seed = 1});
  Loop loop;
  const Instant began = time.world();
  {
    const auto cancelled = loop.after(hours(10), [] {});
  }

  EXPECT_FALSE(time.step());

  EXPECT_EQ(time.world(), began);
}

// The steps of three loops with workers, as text.
std::string trace(std::uint64_t seed) {
  VirtualTime time({.seed = seed});
  std::string trace;
  std::vector<std::unique_ptr<Loop>> loops;
  std::vector<std::unique_ptr<Workers>> workers;
  const auto note = [&](std::size_t index, const char* what) {
    trace += std::to_string(index) + what + std::to_string(Loop::now().time_since_epoch().count()) +
             " " + std::to_string(random_number()) + "\n";
  };
  const auto work = [&](std::size_t index) -> Task<void> {
    for (int round = 0; round < 5; ++round) {
      note(index, " loop ");
      const int answer = co_await workers[index]->run(unnamed_consumer(), [&note, index, round] {
        note(index, " worker ");
        return round;
      });
      EXPECT_EQ(answer, round);
    }
  };
  for (std::size_t index = 0; index < 3; ++index) {
    loops.push_back(std::make_unique<Loop>());
    workers.push_back(std::make_unique<Workers>(*loops.back(), 2));
    loops.back()->spawn(work(index));
  }
  while (time.step()) {
  }
  workers.clear();
  return trace;
}

TEST(VirtualTime, ASeedRepeatsARunExactlyAndAnotherSeedDoesNot) {
  const std::string first = trace(7);

  EXPECT_EQ(trace(7), first);
  EXPECT_NE(trace(8), first);
}

TEST(VirtualTime, AStoppedProcessIsLateAndTheOthersAreNot) {
  VirtualTime time({.seed = 3});
  VirtualTime::Process stopped(time);
  Loop other;
  std::unique_ptr<Loop> loop;
  {
    const VirtualTime::Inside inside(stopped);
    loop = std::make_unique<Loop>();
  }
  Instant due{};
  Instant due_elsewhere{};
  const Instant began = time.world();
  const auto timer = loop->after(seconds(5), [&] { due = Loop::now(); });
  const auto elsewhere = other.after(seconds(5), [&] { due_elsewhere = Loop::now(); });

  stopped.stop();
  time.run_for(seconds(60));
  EXPECT_EQ(due, Instant());
  stopped.resume(Clocks::WentOn);
  time.run_for(seconds(1));

  EXPECT_GE(due - began, seconds(60));
  EXPECT_LT(due_elsewhere - began, seconds(6));
}

TEST(VirtualTime, TheClocksOfAPausedMachineStandStill) {
  VirtualTime time({.seed = 3});
  VirtualTime::Process paused(time);
  std::unique_ptr<Loop> loop;
  {
    const VirtualTime::Inside inside(paused);
    loop = std::make_unique<Loop>();
  }
  const auto clocks = [&] {
    const VirtualTime::Inside inside(paused);
    return std::pair(Loop::now(), Loop::wall_now());
  };
  bool is_due = false;
  const auto timer = loop->after(seconds(5), [&] { is_due = true; });
  const auto [boot, wall] = clocks();

  paused.stop();
  time.run_for(seconds(60));
  paused.resume(Clocks::StoodStill);
  EXPECT_LT(clocks().first - boot, seconds(1));
  EXPECT_LT(clocks().second - wall, seconds(1));
  time.run_for(seconds(4));
  EXPECT_FALSE(is_due);
  time.run_for(seconds(2));
  EXPECT_TRUE(is_due);

  paused.jump_wall_clock(hours(1));
  EXPECT_GT(clocks().second - wall, hours(1));
  EXPECT_LT(clocks().first - boot, seconds(10));
}

}  // namespace
}  // namespace hangar::io
