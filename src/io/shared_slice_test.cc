#include "io/shared_slice.h"

#include "io/loop.h"
#include "io/task.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>

namespace hangar::io {
namespace {

// Works `pieces` times, each time using up the slice, and appends `name` to `done` for each piece.
Task<void> work(SharedSlice slice, std::string& done, char name, int pieces) {
  for (int piece = 0; piece < pieces; ++piece) {
    co_await slice.turn();
    done += name;
    (void)slice.is_used_up_by(10);
  }
}

TEST(SharedSlice, IsOneForAllTasksBetweenTwoRounds) {
  Loop loop;
  const SharedSlice slice(loop, 10);
  std::string done;
  const auto round = [&](const auto& self) -> void {
    done += ' ';
    if (loop.spawned_count() > 0) loop.post([&self] { self(self); });
  };

  for (const char name : {'a', 'b', 'c'})
    loop.spawn(work(slice, done, name, 3));
  loop.post([&] { round(round); });
  loop.run_until([&] { return loop.spawned_count() == 0; });

  std::size_t row = 0;
  for (const char what : done) {
    row = what == ' ' ? 0 : row + 1;
    EXPECT_LE(row, 1U) << done;
  }
  std::erase(done, ' ');
  // The first task starts, and waits again, before the others have started.
  EXPECT_EQ(done, "aabcabcbc") << "they take turns";
}

TEST(SharedSlice, WhatFitsIntoItWaitsForNothing) {
  Loop loop;
  const SharedSlice slice(loop, 10);
  int done = 0;
  const auto little = [](SharedSlice of, int& count) -> Task<void> {
    for (int piece = 0; piece < 2; ++piece) {
      co_await of.turn();
      if (!of.is_used_up_by(4)) ++count;
    }
  };

  loop.spawn(little(slice, done));

  EXPECT_EQ(done, 2);
  EXPECT_FALSE(slice.is_used_up_by(1));
  EXPECT_TRUE(slice.is_used_up_by(1)) << "one past it";
}

}  // namespace
}  // namespace hangar::io
