#include "io/exception.h"

#include "base/consumer.h"
#include "base/result.h"
#include "io/all.h"
#include "io/loop.h"
#include "io/run.h"
#include "io/task.h"
#include "io/workers.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <memory_resource>
#include <new>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::io {
namespace {

// The exceptions that the loop has reported.
struct Reports {
  explicit Reports(Loop& loop) {
    loop.observe({.on_exception = [this](const Error& error, std::string_view activity) {
      all.push_back(std::string(activity) + ": " + error.message());
    }});
  }
  std::vector<std::string> all;
};

Task<int> throw_instead(Loop& loop) {
  const Result<> elapsed = co_await loop.sleep(std::chrono::milliseconds(1), std::stop_token());
  EXPECT_TRUE(elapsed);
  throw std::runtime_error("no number");
}

Task<Result<int>> double_it(Task<int> task) {
  co_return 2 * co_await std::move(task);
}

TEST(Exception, IsTheErrorOfATaskThatHasAResult) {
  Loop loop;

  const Result<int> result = run_to_end(loop, double_it(throw_instead(loop)));

  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind(), ErrorKind::Unavailable);
  EXPECT_EQ(result.error().message(), "unexpected exception: no number");
}

TEST(Exception, ReachesTheTaskThatAwaits) {
  Loop loop;

  EXPECT_THROW((void)run_to_end(loop, throw_instead(loop)), std::runtime_error);
}

TEST(Exception, IsAnErrorOnceContained) {
  Loop loop;

  const Result<int> result = run_to_end(loop, contained(throw_instead(loop)));
  const Result<> nothing = run_to_end(
      loop, contained([](Loop& on) -> Task<void> { (void)co_await throw_instead(on); }(loop)));

  EXPECT_FALSE(result);
  EXPECT_FALSE(nothing);
}

TEST(Exception, OfTooLittleMemoryIsOne) {
  Loop loop;
  // The sanitizers' allocator ends the process instead of throwing, so this resource is used.
  const auto allocate = [](std::pmr::memory_resource& memory) -> Task<Result<int>> {
    const std::pmr::vector<int> values(1, &memory);
    co_return values.front();
  };

  const Result<int> result = run_to_end(loop, allocate(*std::pmr::null_memory_resource()));

  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message(), "out of memory");
}

TEST(Exception, OfASpawnedTaskEndsThatTaskAlone) {
  Loop loop;
  const Reports reports(loop);
  bool is_other_done = false;
  const auto fail_as = [](Loop& on, std::string name) -> Task<void> {
    const Loop::Activity activity(on, std::move(name));
    (void)co_await throw_instead(on);
  };
  const auto go_on = [](Loop& on, bool& done) -> Task<void> {
    (void)co_await on.sleep(std::chrono::milliseconds(5), std::stop_token());
    done = true;
  };

  loop.post([&] {
    loop.spawn(fail_as(loop, "widget default/a"));
    loop.spawn(go_on(loop, is_other_done));
  });
  loop.run_until([&] { return is_other_done && loop.spawned_count() == 0; });

  EXPECT_EQ(reports.all,
            std::vector<std::string>{"widget default/a: unexpected exception: no number"});
}

TEST(Exception, OfPostedWorkAndOfATimerEndsThatAlone) {
  Loop loop;
  const Reports reports(loop);
  bool is_done = false;

  loop.post([] { throw std::runtime_error("posted"); });
  const Loop::Timer timer =
      loop.after(std::chrono::milliseconds(1), [] { throw std::runtime_error("timer"); });
  const Loop::Timer last = loop.after(std::chrono::milliseconds(5), [&] { is_done = true; });
  loop.run_until([&] { return is_done; });

  EXPECT_EQ(reports.all, (std::vector<std::string>{": unexpected exception: posted",
                                                   ": unexpected exception: timer"}));
}

TEST(Exception, OfAWorkersJobReachesTheTaskThatAwaitsIt) {
  Loop loop;
  Workers workers(loop, 1);
  const auto ask = [](Workers& on) -> Task<Result<int>> {
    co_return co_await on.run(unnamed_consumer(), []() -> int { throw std::bad_alloc(); });
  };
  const auto ask_again = [](Workers& on) -> Task<Result<int>> {
    co_return co_await on.run(unnamed_consumer(), []() -> int { return 7; });
  };

  const Result<int> result = run_to_end(loop, ask(workers));
  const Result<int> next = run_to_end(loop, ask_again(workers));

  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message(), "out of memory");
  EXPECT_EQ(next.value_or(0), 7);
}

TEST(Exception, OfASubmittedJobIsReportedAndItsThreadGoesOn) {
  Loop loop;
  const Reports reports(loop);
  Workers workers(loop, 1);
  bool is_done = false;

  loop.post([&] {
    workers.submit(unnamed_consumer(), [] { throw std::runtime_error("job"); });
    workers.submit(unnamed_consumer(), [&] { loop.post([&] { is_done = true; }); });
  });
  loop.run_until([&] { return is_done; });

  EXPECT_EQ(reports.all, std::vector<std::string>{": unexpected exception: job"});
}

TEST(Exception, OfOneTaskStopsNoneOfTheOthersAwaitedWithIt) {
  Loop loop;
  int ended = 0;
  const auto count = [](Loop& on, int& counted) -> Task<int> {
    (void)co_await on.sleep(std::chrono::milliseconds(3), std::stop_token());
    co_return ++counted;
  };
  std::vector<Task<int>> tasks;
  tasks.push_back(throw_instead(loop));
  tasks.push_back(count(loop, ended));

  EXPECT_THROW((void)run_to_end(loop, all(loop, std::move(tasks))), std::runtime_error);
  EXPECT_EQ(ended, 1);
}

}  // namespace
}  // namespace hangar::io
