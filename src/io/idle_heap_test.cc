#include "io/idle_heap.h"

#include "base/time.h"
#include "io/loop.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>

namespace hangar::io {
namespace {

TEST(IdleHeap, GivesBackOnceAfterWorkAndNotWithoutAny) {
  Loop loop;
  int count = 0;
  IdleHeap heap(loop, Duration::zero(), [&count] { ++count; });
  const Loop::Timer later = loop.after(std::chrono::milliseconds(1), [&heap] {
    heap.used();
    heap.used();
  });
  loop.run_until([&count] { return count == 1; });
  bool is_over = false;
  loop.post([&is_over] { is_over = true; });
  loop.run_until([&is_over] { return is_over; });
  EXPECT_EQ(count, 1);
  heap.used();
  loop.run_until([&count] { return count == 2; });
}

TEST(IdleHeap, WaitsForAsLongAsWorkGoesOn) {
  Loop loop;
  const Duration quiet = std::chrono::milliseconds(20);
  Instant last_used;
  bool was_given = false;
  IdleHeap heap(loop, quiet, [&] {
    was_given = true;
    EXPECT_GE(Loop::now() - last_used, quiet);
  });
  Loop::Timer next;
  int left = 5;
  std::function<void()> work = [&] {
    last_used = Loop::now();
    heap.used();
    if (--left > 0) next = loop.after(quiet / 2, [&work] { work(); });
  };
  work();
  loop.run_until([&was_given] { return was_given; });
}

TEST(IdleHeap, EndsWithItsOwner) {
  Loop loop;
  {
    IdleHeap heap(loop, Duration::zero(), [] { FAIL() << "nobody is there"; });
    heap.used();
  }
  bool is_over = false;
  loop.post([&is_over] { is_over = true; });
  loop.run_until([&is_over] { return is_over; });
}

}  // namespace
}  // namespace hangar::io
