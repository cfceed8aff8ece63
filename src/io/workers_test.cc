#include "io/workers.h"

#include "base/time.h"
#include "io/loop.h"
#include "io/task.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace hangar::io {
namespace {

Task<void> square(Loop& loop, Workers& workers, int number, std::vector<int>& results) {
  const std::thread::id loop_thread = std::this_thread::get_id();
  auto result = co_await workers.run([number, loop_thread] {
    EXPECT_NE(std::this_thread::get_id(), loop_thread);
    return std::make_unique<int>(number * number);
  });
  EXPECT_TRUE(loop.is_current());
  results.push_back(*result);
}

TEST(Workers, RunElsewhereAndReturnToTheLoop) {
  Loop loop;
  Workers workers(loop, 2);
  std::vector<int> results;

  loop.post([&] {
    for (int number = 0; number < 100; ++number)
      loop.spawn(square(loop, workers, number, results));
  });
  loop.run_until([&] { return results.size() == 100; });

  int sum = 0;
  for (const int result : results)
    sum += result;
  EXPECT_EQ(sum, 328350);
}

Task<void> flushed(Workers& workers, Duration time_max, std::optional<bool>& whether) {
  whether = co_await workers.flush(time_max);
}

TEST(Workers, SayWhenAllBeforeIsDoneAndWaitNoLongerThanTheyMay) {
  Loop loop;
  Workers workers(loop, 1);
  std::latch may_end(1);
  std::atomic<bool> has_ended = false;
  std::optional<bool> soon;
  std::optional<bool> later;

  workers.submit([&] {
    may_end.wait();
    has_ended = true;
  });
  loop.post([&] { loop.spawn(flushed(workers, std::chrono::milliseconds(1), soon)); });
  loop.run_until([&] { return soon.has_value(); });
  EXPECT_EQ(soon, false);
  loop.post([&] {
    loop.spawn(flushed(workers, std::chrono::hours(1), later));
    may_end.count_down();
  });
  loop.run_until([&] { return later.has_value(); });
  EXPECT_EQ(later, true);
  EXPECT_TRUE(has_ended);
}

TEST(Workers, WorkAtTheSameTime) {
  Loop loop;
  Workers workers(loop, 3);
  std::latch all_there(3);
  std::atomic<int> passed = 0;

  for (int index = 0; index < 3; ++index) {
    workers.submit([&] {
      all_there.arrive_and_wait();  // For ever, if one job waited for another.
      ++passed;
      loop.post([] {});
    });
  }
  loop.run_until([&] { return passed == 3; });

  EXPECT_EQ(workers.thread_count(), 3U);
}

TEST(Workers, EndWhatTheyHaveBegunAndDropTheRest) {
  Loop loop;
  std::atomic<bool> ended = false;
  std::latch begun(1);
  std::latch may_end(1);
  const auto dropped = std::make_shared<int>(0);

  {
    Workers workers(loop, 1);
    workers.submit([&] {
      begun.count_down();
      may_end.wait();
      ended = true;
    });
    workers.submit([dropped] {});
    begun.wait();
    // The destructor requests the stop before or after the first job may end: both are fine for
    // that job.
    may_end.count_down();
  }

  EXPECT_TRUE(ended);
  EXPECT_EQ(dropped.use_count(), 1);
}

}  // namespace
}  // namespace hangar::io
