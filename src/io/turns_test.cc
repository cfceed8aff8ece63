#include "io/turns.h"

#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace hangar::io {
namespace {

void run_ready(Loop& loop) {
  bool done = false;
  // Two turns: work that the first one posts runs before the second.
  loop.post([&] { loop.post([&] { done = true; }); });
  loop.run_until([&] { return done; });
}

Task<void> work(Turns<std::string>& turns, std::string key, std::string name, OneShot<bool> end,
                std::vector<std::string>& began) {
  const Turns<std::string>::Turn turn = co_await turns.take(std::move(key));
  began.push_back(name);
  co_await end.wait();
}

TEST(Turns, AreOneAtATimeForEachKeyInTheOrderOfTheirComing) {
  Loop loop;
  Turns<std::string> turns(loop);
  std::vector<std::string> began;
  const OneShot<bool> first(loop);
  const OneShot<bool> second(loop);
  const OneShot<bool> third(loop);
  const OneShot<bool> other(loop);
  loop.spawn(work(turns, "a", "first", first, began));
  loop.spawn(work(turns, "a", "second", second, began));
  loop.spawn(work(turns, "a", "third", third, began));
  loop.spawn(work(turns, "b", "other", other, began));
  run_ready(loop);
  EXPECT_EQ(began, (std::vector<std::string>{"first", "other"}));

  first.set(true);
  second.set(true);
  run_ready(loop);
  run_ready(loop);
  EXPECT_EQ(began, (std::vector<std::string>{"first", "other", "second", "third"}));

  third.set(true);
  other.set(true);
  run_ready(loop);
  EXPECT_EQ(loop.spawned_count(), 0U);
}

TEST(Turns, KeepNothingForAKeyThatNobodyUses) {
  Loop loop;
  Turns<std::string> turns(loop);
  std::vector<std::string> began;
  const OneShot<bool> end(loop);
  const OneShot<bool> later(loop);
  loop.spawn(work(turns, "a", "first", end, began));
  loop.spawn(work(turns, "a", "second", later, began));

  end.set(true);
  run_ready(loop);
  EXPECT_FALSE(turns.is_empty());
  later.set(true);
  run_ready(loop);

  EXPECT_TRUE(turns.is_empty());
}

}  // namespace
}  // namespace hangar::io
