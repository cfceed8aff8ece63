#include "io/loop.h"

#include "base/consumer.h"
#include "base/result.h"
#include "base/time.h"
#include "io/all.h"
#include "io/cpu_time.h"
#include "io/task.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <ranges>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace hangar::io {
namespace {

constexpr std::chrono::hours kForever{24};

// Two connected sockets.
class SocketPair {
 public:
  SocketPair() {
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends_.data()), 0);
  }
  SocketPair(const SocketPair&) = delete;
  SocketPair& operator=(const SocketPair&) = delete;
  ~SocketPair() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  [[nodiscard]] int near() const { return ends_[0]; }
  void send_from_far() const { EXPECT_EQ(::write(ends_[1], "x", 1), 1); }
  void take() const {
    char byte = 0;
    EXPECT_EQ(::read(ends_[0], &byte, 1), 1);
  }

 private:
  std::array<int, 2> ends_{};
};

TEST(Loop, RunsPostedWorkInOrder) {
  Loop loop;
  std::string order;

  loop.post([&] {
    order += 'a';
    loop.post([&] { order += 'd'; });
    order += 'b';
  });
  loop.post([&] { order += 'c'; });
  loop.run_until([&] { return order.size() == 4; });

  EXPECT_EQ(order, "abcd");
}

TEST(Loop, TakesWorkFromOtherThreads) {
  Loop loop;
  bool on_loop_thread = false;

  const std::jthread other([&] {
    EXPECT_FALSE(loop.is_current());
    loop.post([&] {
      on_loop_thread = loop.is_current();
      loop.stop();
    });
  });
  loop.run();

  EXPECT_TRUE(on_loop_thread);
}

TEST(Loop, FinishesWhatIsReadyWhenItIsStopped) {
  Loop loop;
  std::string order;

  loop.post([&] {
    loop.stop();
    loop.post([&] { order += 'x'; });
  });
  loop.run();

  EXPECT_EQ(order, "x");
}

TEST(Loop, FinishesWhatOtherThreadsHavePostedWhenItIsStopped) {
  Loop loop;
  std::string order;

  loop.post([&] {
    std::jthread([&] {
      for (const char name : std::string("abc"))
        loop.post([&order, name] { order += name; });
    }).join();
    loop.stop();
  });
  loop.run();

  EXPECT_EQ(order, "abc");
}

TEST(Loop, DropsWhatOtherThreadsHavePostedWhenItNeverRunsAgain) {
  const auto held = std::make_shared<int>(0);
  {
    Loop loop;
    loop.post([&] { loop.stop(); });
    loop.run();
    std::jthread([&] { loop.post([held] {}); }).join();
  }

  EXPECT_EQ(held.use_count(), 1);
}

TEST(Loop, RunUntilEndsWhenItIsStopped) {
  Loop loop;

  loop.post([&] { loop.stop(); });
  loop.run_until([] { return false; });
}

TEST(LoopTimer, CallsOnceAndInOrderOfDelays) {
  Loop loop;
  std::string order;

  const auto later = loop.after(std::chrono::milliseconds(2), [&] { order += 'b'; });
  const auto sooner = loop.after(std::chrono::milliseconds(1), [&] { order += 'a'; });
  loop.run_until([&] { return order.size() >= 2; });

  EXPECT_EQ(order, "ab");
}

TEST(LoopTimer, NeverCallsOnceCancelledOrDestroyed) {
  Loop loop;
  bool called = false;
  const auto call = [&] { called = true; };

  {
    auto cancelled = loop.after(Duration::zero(), call);
    auto replaced = loop.after(Duration::zero(), call);
    const auto destroyed = loop.after(Duration::zero(), call);
    cancelled.cancel();
    replaced = Loop::Timer();
  }
  bool done = false;
  const auto last = loop.after(std::chrono::milliseconds(1), [&] { done = true; });
  loop.run_until([&] { return done; });

  EXPECT_FALSE(called);
}

TEST(LoopTimer, MayReplaceItselfWhileItIsCalled) {
  Loop loop;
  int calls = 0;
  Loop::Timer timer;

  timer = loop.after(Duration::zero(),
                     [&] { timer = loop.after(Duration::zero(), [&] { calls = 2; }); });
  loop.run_until([&] { return calls == 2; });

  EXPECT_EQ(calls, 2);
}

Task<void> sleep_and_record(Loop& loop, Duration delay, std::stop_token stop,
                            std::vector<Result<>>& results) {
  results.push_back(co_await loop.sleep(delay, std::move(stop)));
}

TEST(LoopSleep, EndsAfterItsDelay) {
  Loop loop;
  std::vector<Result<>> results;

  loop.spawn(sleep_and_record(loop, Duration::zero(), {}, results));
  EXPECT_EQ(loop.spawned_count(), 1U);
  loop.run_until([&] { return loop.spawned_count() == 0; });

  ASSERT_EQ(results.size(), 1U);
  EXPECT_TRUE(results[0].has_value());
}

TEST(LoopSleep, EndsInALaterTurnWhenAStopIsRequested) {
  Loop loop;
  std::stop_source stop;
  std::vector<Result<>> results;
  loop.spawn(sleep_and_record(loop, kForever, stop.get_token(), results));

  stop.request_stop();

  EXPECT_TRUE(results.empty());
  loop.run_until([&] { return loop.spawned_count() == 0; });
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].error().kind(), ErrorKind::Cancelled);
}

TEST(LoopSleep, DoesNotBeginOnceAStopWasRequested) {
  Loop loop;
  std::stop_source stop;
  stop.request_stop();
  std::vector<Result<>> results;

  loop.spawn(sleep_and_record(loop, kForever, stop.get_token(), results));

  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].error().kind(), ErrorKind::Cancelled);
}

TEST(LoopWatch, CallsForEachReadinessUntilItEnds) {
  Loop loop;
  const SocketPair sockets;
  int calls = 0;
  auto watch = loop.watch(sockets.near(), Loop::Direction::Read, [&] {
    sockets.take();
    ++calls;
  });

  for (int sent = 1; sent <= 3; ++sent) {
    sockets.send_from_far();
    loop.run_until([&] { return calls == sent; });
  }
  watch.reset();
  sockets.send_from_far();
  bool done = false;
  loop.post([&] { done = true; });
  loop.run_until([&] { return done; });

  EXPECT_EQ(calls, 3);
}

TEST(LoopWatch, CallsAgainWhileWhatIsThereIsNotTaken) {
  Loop loop;
  const SocketPair sockets;
  int calls = 0;
  sockets.send_from_far();

  const auto watch = loop.watch(sockets.near(), Loop::Direction::Read, [&] { ++calls; });
  loop.run_until([&] { return calls == 3; });

  EXPECT_EQ(calls, 3);
}

TEST(LoopWatch, TellsBothDirectionsOfOneDescriptorApart) {
  Loop loop;
  const SocketPair sockets;
  int reads = 0;
  int writes = 0;

  const auto read = loop.watch(sockets.near(), Loop::Direction::Read, [&] {
    sockets.take();
    ++reads;
  });
  auto write = loop.watch(sockets.near(), Loop::Direction::Write, [&] { ++writes; });
  loop.run_until([&] { return writes > 0; });
  EXPECT_EQ(reads, 0);
  // Destroying one watch does not affect the other.
  write.reset();
  const int writes_before = writes;
  sockets.send_from_far();
  loop.run_until([&] { return reads == 1; });

  EXPECT_EQ(writes, writes_before);
}

TEST(LoopWatch, MayBeDestroyedByItsOwnCall) {
  Loop loop;
  const SocketPair sockets;
  sockets.send_from_far();
  bool called = false;

  std::unique_ptr<Loop::Watch> watch;
  watch = loop.watch(sockets.near(), Loop::Direction::Read, [&] {
    watch.reset();
    called = true;
  });
  loop.run_until([&] { return called; });

  EXPECT_EQ(watch, nullptr);
}

TEST(LoopWatch, LeavesTheDescriptorToItsOwner) {
  Loop loop;
  const SocketPair sockets;

  loop.watch(sockets.near(), Loop::Direction::Read, [] {}).reset();
  const auto again = loop.watch(sockets.near(), Loop::Direction::Read, [] {});

  sockets.send_from_far();
  sockets.take();
}

Task<int> deep(int levels) {
  if (levels == 0) co_return 0;
  co_return 1 + co_await deep(levels - 1);
}

Task<void> many_in_a_row(int count, int& sum) {
  for (int step = 0; step < count; ++step)
    sum += co_await deep(1);
}

TEST(Task, AwaitingFinishedTasksGrowsNoStack) {
  Loop loop;
  int sum = 0;

  loop.spawn(many_in_a_row(20'000, sum));

  EXPECT_EQ(sum, 20'000);
  EXPECT_EQ(loop.spawned_count(), 0U);
}

TEST(Task, DoesNothingUntilItIsAwaited) {
  int sum = 0;

  {
    const Task<void> never = many_in_a_row(1, sum);
  }

  EXPECT_EQ(sum, 0);
}

TEST(Loop, ShowsOtherThreadsForWhomItsTurnWorks) {
  Loop loop;
  std::optional<Loop::RunningTurn> seen;
  bool is_over = false;

  EXPECT_FALSE(loop.running_turn());
  loop.post([&] {
    const Loop::Activity activity(loop, "widget default/a");
    std::thread([&] { seen = loop.running_turn(); }).join();
  });
  loop.post([&] { is_over = true; });
  loop.run_until([&] { return is_over; });

  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->activity, "widget default/a");
  EXPECT_LE(seen->began, Loop::now());
  EXPECT_FALSE(loop.running_turn());
}

Task<void> note_activity(Loop& loop, std::string name, std::vector<std::string>& seen) {
  const Loop::Activity activity(loop, std::move(name));
  for (int wait = 0; wait < 3; ++wait) {
    const Result<> elapsed = co_await loop.sleep(std::chrono::milliseconds(1), std::stop_token());
    EXPECT_TRUE(elapsed);
    seen.push_back(loop.activity() ? loop.activity()->name : "nobody");
  }
}

TEST(Loop, AnActivityFollowsItsTaskAndNoOther) {
  Loop loop;
  std::vector<std::string> first;
  std::vector<std::string> second;
  std::vector<std::string> of_turns;
  loop.observe({.on_turn = [&](Duration, std::string_view activity) {
    if (!activity.empty()) of_turns.emplace_back(activity);
  }});

  loop.post([&] {
    loop.spawn(note_activity(loop, "a", first));
    EXPECT_EQ(loop.activity(), nullptr);
    loop.spawn(note_activity(loop, "b", second));
  });
  loop.post([&] { EXPECT_EQ(loop.activity(), nullptr); });
  loop.run_until([&] { return !first.empty() && loop.spawned_count() == 0; });

  EXPECT_EQ(first, std::vector<std::string>(3, "a"));
  EXPECT_EQ(second, std::vector<std::string>(3, "b"));
  // The first turn has worked for both, and names the one that worked for longer.
  EXPECT_EQ(std::ranges::count(of_turns | std::views::drop(1), "a"), 3);
}

// What the activities of a loop have cost their payers.
class LoopPayer : public ::testing::Test {
 protected:
  static constexpr std::chrono::milliseconds kWork{2};

  LoopPayer() {
    loop_.set_on_work([this](const Tenant& payer, Duration time) { paid_[payer] += time; });
  }

  static void work() {
    const Duration end = thread_cpu_time() + kWork;
    while (thread_cpu_time() < end) {
    }
  }

  // Works before and after a wait.
  static Task<bool> work_twice(Loop& loop) {
    work();
    const Result<> elapsed = co_await loop.sleep(std::chrono::milliseconds(1), std::stop_token());
    work();
    co_return elapsed.has_value();
  }

  void run(std::move_only_function<void()> first) {
    bool has_begun = false;
    loop_.post([&] {
      first();
      has_begun = true;
    });
    loop_.run_until([&] { return has_begun && loop_.spawned_count() == 0; });
  }

  const Tenant a_ = Tenant::of_namespace("a");
  const Tenant b_ = Tenant::of_namespace("b");
  Loop loop_;
  std::map<Tenant, Duration> paid_;
};

TEST_F(LoopPayer, PaysForItsActivityAndForNoOther) {
  const auto act = [](Loop& loop, Tenant payer) -> Task<void> {
    const Loop::Activity activity(loop, "widget", std::move(payer));
    EXPECT_TRUE(co_await work_twice(loop));
  };
  const Duration before = thread_cpu_time();

  run([&] {
    loop_.spawn(act(loop_, a_));
    work();  // Nobody's.
    loop_.spawn(act(loop_, Tenant::host()));
    loop_.spawn(act(loop_, b_));
  });

  EXPECT_EQ(paid_.size(), 2U);
  EXPECT_GE(paid_[a_], 2 * kWork);
  EXPECT_GE(paid_[b_], 2 * kWork);
  EXPECT_LE(paid_[a_] + paid_[b_] + 3 * kWork, thread_cpu_time() - before);
}

TEST_F(LoopPayer, PaysForThePartsOfItsTaskAndNotForWhatTheTaskSetsOff) {
  static constexpr auto kWatch = [](Loop& loop, std::string& name) -> Task<void> {
    EXPECT_TRUE(co_await work_twice(loop));
    name = loop.activity() ? loop.activity()->name : "nobody";
  };
  const auto act = [](Loop& loop, Tenant payer, std::string& name_of_spawned) -> Task<void> {
    const Loop::Activity activity(loop, "widget", std::move(payer));
    loop.spawn(kWatch(loop, name_of_spawned));
    std::vector<Task<bool>> parts;
    parts.push_back(work_twice(loop));
    parts.push_back(work_twice(loop));
    EXPECT_EQ(co_await all(loop, std::move(parts)), std::vector<bool>(2, true));
  };
  std::string name_of_spawned;
  const Duration before = thread_cpu_time();

  run([&] { loop_.spawn(act(loop_, a_, name_of_spawned)); });

  EXPECT_GE(paid_[a_], 4 * kWork);
  EXPECT_LE(paid_[a_] + 2 * kWork, thread_cpu_time() - before);
  EXPECT_EQ(name_of_spawned, "widget");
}

}  // namespace
}  // namespace hangar::io
