#include "io/event.h"

#include "base/result.h"
#include "io/all.h"
#include "io/loop.h"
#include "io/task.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hangar::io {
namespace {

Task<void> take(OneShot<std::string> shot, std::string& out) {
  out = co_await shot.wait();
}

Task<void> wait_and_record(Event& event, std::stop_token stop, std::vector<Result<>>& results) {
  results.push_back(co_await event.wait(std::move(stop)));
}

void run_ready(Loop& loop) {
  bool done = false;
  // Two turns: work that the first one posts runs before the second.
  loop.post([&] { loop.post([&] { done = true; }); });
  loop.run_until([&] { return done; });
}

TEST(OneShot, HandsItsValueOverInEitherOrder) {
  Loop loop;
  const OneShot<std::string> early(loop);
  const OneShot<std::string> late(loop);
  std::string first;
  std::string second;

  early.set("early");
  early.set("dropped");
  loop.spawn(take(early, first));
  loop.spawn(take(late, second));
  late.set("late");
  EXPECT_EQ(second, "");  // It runs in a later turn.
  run_ready(loop);

  EXPECT_EQ(first, "early");
  EXPECT_EQ(second, "late");
}

TEST(Event, WakesEveryoneWhoWaits) {
  Loop loop;
  Event event(loop);
  std::vector<Result<>> results;
  loop.spawn(wait_and_record(event, {}, results));
  loop.spawn(wait_and_record(event, {}, results));

  event.notify_all();
  run_ready(loop);

  ASSERT_EQ(results.size(), 2U);
  EXPECT_TRUE(results[0].has_value());
}

TEST(Event, HasNoMemory) {
  Loop loop;
  Event event(loop);
  std::vector<Result<>> results;

  event.notify_all();
  loop.spawn(wait_and_record(event, {}, results));
  run_ready(loop);

  EXPECT_TRUE(results.empty());
  event.notify_all();
  run_ready(loop);
}

TEST(Event, LetsAWaiterGoWhenAStopIsRequested) {
  Loop loop;
  Event event(loop);
  std::stop_source stop;
  std::vector<Result<>> stopped;
  std::vector<Result<>> other;
  loop.spawn(wait_and_record(event, stop.get_token(), stopped));
  loop.spawn(wait_and_record(event, {}, other));

  stop.request_stop();
  run_ready(loop);

  ASSERT_EQ(stopped.size(), 1U);
  EXPECT_EQ(stopped[0].error().kind(), ErrorKind::Cancelled);
  EXPECT_TRUE(other.empty());
  event.notify_all();
  run_ready(loop);
  EXPECT_EQ(other.size(), 1U);
}

TEST(Event, DoesNotWaitOnceAStopWasRequested) {
  Loop loop;
  Event event(loop);
  std::stop_source stop;
  stop.request_stop();
  std::vector<Result<>> results;

  loop.spawn(wait_and_record(event, stop.get_token(), results));

  EXPECT_EQ(results.size(), 1U);
}

TEST(Event, MayGoOnceItHasNotifiedAWaiterThatWasStopped) {
  Loop loop;
  auto event = std::make_unique<Event>(loop);
  std::stop_source stop;
  std::vector<Result<>> results;
  loop.spawn(wait_and_record(*event, stop.get_token(), results));

  stop.request_stop();
  event->notify_all();
  event.reset();
  run_ready(loop);

  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].error().kind(), ErrorKind::Cancelled);
}

Task<void> hold(Semaphore& semaphore, OneShot<bool> release, int& holding, int& most) {
  const Semaphore::Slot slot = co_await semaphore.acquire();
  most = std::max(most, ++holding);
  co_await release.wait();
  --holding;
}

TEST(Semaphore, LetsNoMoreInThanItHasSlotsAndEveryoneInTurn) {
  Loop loop;
  Semaphore semaphore(loop, 2);
  int holding = 0;
  int most = 0;
  std::vector<OneShot<bool>> releases;
  for (int index = 0; index < 5; ++index) {
    releases.emplace_back(loop);
    loop.spawn(hold(semaphore, releases.back(), holding, most));
  }
  EXPECT_EQ(holding, 2);

  for (const OneShot<bool>& release : releases)
    release.set(true);
  loop.run_until([&] { return loop.spawned_count() == 0; });

  EXPECT_EQ(most, 2);
  EXPECT_EQ(holding, 0);
}

Task<void> try_hold(Semaphore& semaphore, std::stop_token stop, OneShot<bool> release,
                    std::optional<bool>& had) {
  const Result<Semaphore::Slot> slot = co_await semaphore.acquire(std::move(stop));
  had = slot.has_value();
  if (slot) co_await release.wait();
}

TEST(Semaphore, WhoIsStoppedLeavesTheQueueAndTakesNoSlot) {
  Loop loop;
  Semaphore semaphore(loop, 1);
  const OneShot<bool> release(loop);
  std::array<std::stop_source, 3> stops;
  std::array<std::optional<bool>, 3> had;
  for (std::size_t index = 0; index < stops.size(); ++index)
    loop.spawn(try_hold(semaphore, stops[index].get_token(), release, had[index]));
  EXPECT_EQ(had[0], true);

  stops[1].request_stop();
  loop.run_until([&] { return had[1].has_value(); });
  EXPECT_EQ(had[1], false);
  EXPECT_EQ(had[2], std::nullopt) << "the slot is not free yet";

  release.set(true);
  loop.run_until([&] { return loop.spawned_count() == 0; });
  EXPECT_EQ(had[2], true);
}

TEST(Semaphore, AStopAfterTheSlotWasHandedOverIsForItsOwner) {
  Loop loop;
  Semaphore semaphore(loop, 1);
  const OneShot<bool> first(loop);
  const OneShot<bool> second(loop);
  std::stop_source stop;
  std::optional<bool> had_first;
  std::optional<bool> had_second;
  loop.spawn(try_hold(semaphore, {}, first, had_first));
  loop.spawn(try_hold(semaphore, stop.get_token(), second, had_second));

  first.set(true);
  loop.run_until([&] { return loop.spawned_count() == 1; });
  stop.request_stop();
  loop.run_until([&] { return had_second.has_value(); });
  EXPECT_EQ(had_second, true);

  second.set(true);
  loop.run_until([&] { return loop.spawned_count() == 0; });
}

TEST(Semaphore, AStopThatWasRequestedBeforeTakesNoSlot) {
  Loop loop;
  Semaphore semaphore(loop, 1);
  const OneShot<bool> release(loop);
  std::stop_source stop;
  stop.request_stop();
  std::optional<bool> had;
  loop.spawn(try_hold(semaphore, stop.get_token(), release, had));
  EXPECT_EQ(had, false);
  EXPECT_EQ(loop.spawned_count(), 0U);
}

Task<int> number(OneShot<bool> ready, int value) {
  co_await ready.wait();
  co_return value;
}

Task<void> gather(Loop& loop, std::vector<Task<int>> tasks, std::optional<std::vector<int>>& out) {
  out = co_await all(loop, std::move(tasks));
}

TEST(All, ReturnsEveryValueInTheOrderOfTheTasks) {
  Loop loop;
  const OneShot<bool> first(loop);
  const OneShot<bool> second(loop);
  std::optional<std::vector<int>> values;
  std::vector<Task<int>> tasks;
  tasks.push_back(number(first, 1));
  tasks.push_back(number(second, 2));

  loop.spawn(gather(loop, std::move(tasks), values));
  second.set(true);
  run_ready(loop);
  EXPECT_FALSE(values.has_value());
  first.set(true);
  loop.run_until([&] { return loop.spawned_count() == 0; });

  EXPECT_EQ(values, (std::vector<int>{1, 2}));
}

TEST(All, OfNothingIsNothing) {
  Loop loop;
  std::optional<std::vector<int>> values;

  loop.spawn(gather(loop, {}, values));

  EXPECT_EQ(values, std::vector<int>());
}

}  // namespace
}  // namespace hangar::io
