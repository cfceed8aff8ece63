#include "io/workers.h"

#include "base/consumer.h"
#include "base/time.h"
#include "io/cpu_time.h"
#include "io/loop.h"
#include "io/task.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <latch>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hangar::io {
namespace {

Task<void> square(Loop& loop, Workers& workers, int number, std::vector<int>& results) {
  const std::thread::id loop_thread = std::this_thread::get_id();
  auto result = co_await workers.run(unnamed_consumer(), [number, loop_thread] {
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
  whether = co_await workers.flush(unnamed_consumer(), time_max);
}

TEST(Workers, SayWhenAllBeforeIsDoneAndWaitNoLongerThanTheyMay) {
  Loop loop;
  Workers workers(loop, 1);
  std::latch may_end(1);
  std::atomic<bool> has_ended = false;
  std::optional<bool> soon;
  std::optional<bool> later;

  workers.submit(unnamed_consumer(), [&] {
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
    workers.submit(unnamed_consumer(), [&] {
      all_there.arrive_and_wait();  // Blocks for ever if one job waited for another.
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
    workers.submit(unnamed_consumer(), [&] {
      begun.count_down();
      may_end.wait();
      ended = true;
    });
    workers.submit(unnamed_consumer(), [dropped] {});
    begun.wait();
    // The destructor requests the stop before or after the first job may end: both are fine for
    // that job.
    may_end.count_down();
  }

  EXPECT_TRUE(ended);
  EXPECT_EQ(dropped.use_count(), 1);
}

Task<void> finished(Workers& workers, Consumer whose, bool& is_over) {
  EXPECT_TRUE(co_await workers.flush(std::move(whose), std::chrono::hours(1)));
  is_over = true;
}

TEST(Workers, TellForWhomTheyHaveWorkedUntilNobodyAsks) {
  Loop loop;
  Workers workers(loop, 1);
  const Consumer team{.tenant = Tenant::of_namespace("team"), .name = "one"};
  std::mutex mutex;
  std::map<Tenant, Duration> told;
  workers.set_on_work([&](const Tenant& whose, Duration time) {
    const std::scoped_lock lock(mutex);
    told[whose] += time;
  });
  static constexpr std::chrono::milliseconds kWork{2};
  const auto work = [&] {
    workers.submit(team, [] {
      const Duration until = thread_cpu_time() + kWork;
      while (thread_cpu_time() < until) {
      }
    });
  };
  const auto finish = [&] {
    bool is_over = false;
    loop.post([&] { loop.spawn(finished(workers, team, is_over)); });
    loop.run_until([&] { return is_over; });
  };

  work();
  work();
  finish();
  workers.set_on_work(nullptr);
  const std::map<Tenant, Duration> before = told;
  work();
  finish();

  ASSERT_TRUE(before.contains(team.tenant));
  EXPECT_GE(before.at(team.tenant), 2 * kWork);
  EXPECT_EQ(told, before);
}

TEST(Workers, TellHowLongEachHasWorked) {
  Loop loop;
  Workers workers(loop, 1);
  std::latch may_end(1);
  std::latch has_begun(1);
  EXPECT_EQ(workers.busy_time(0), Duration::zero());

  workers.submit(unnamed_consumer(), [&] {
    has_begun.count_down();
    may_end.wait();
  });
  has_begun.wait();
  const Duration early = workers.busy_time(0);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_GT(workers.busy_time(0), early);
  may_end.count_down();
  // Once the next job has finished, an idle worker's time stands still.
  std::optional<bool> is_idle;
  loop.spawn(flushed(workers, std::chrono::minutes(1), is_idle));
  loop.run_until([&] { return is_idle.has_value(); });
  EXPECT_GE(workers.busy_time(0), std::chrono::milliseconds(5));
}

// Threads that are blocked until all jobs of a test wait. The test records the order in which they
// then take the jobs, with a letter for each.
class WorkersInTurn : public ::testing::Test {
 protected:
  void start(std::size_t thread_count) {
    workers_.emplace(loop_, thread_count);
    held_.emplace(static_cast<std::ptrdiff_t>(thread_count));
    for (std::size_t thread = 0; thread < thread_count; ++thread) {
      workers_->submit(in("warden"), [this] {
        held_->count_down();
        may_go_on_.wait();
      });
    }
    held_->wait();
  }
  ~WorkersInTurn() override {
    if (!may_go_on_.try_wait()) may_go_on_.count_down();
    workers_.reset();
  }

  static Consumer in(std::string namespace_name, std::string name = "operator/a") {
    return {.tenant = Tenant::of_namespace(std::move(namespace_name)), .name = std::move(name)};
  }

  // A job that uses `cost` of processor time.
  Workers::Work job(char letter, Duration cost = {}) {
    ++submitted_;
    return [this, letter, cost] {
      const Duration until = thread_cpu_time() + cost;
      while (cost > Duration::zero() && thread_cpu_time() < until) {
      }
      const std::scoped_lock lock(mutex_);
      order_ += letter;
      if (order_.size() == submitted_) loop_.post([this] { is_done_ = true; });
    };
  }

  std::string order() {
    may_go_on_.count_down();
    loop_.run_until([this] { return is_done_; });
    return order_;
  }

  Loop loop_;
  std::mutex mutex_;
  std::string order_;
  std::size_t submitted_ = 0;  // All are submitted before a thread continues.
  bool is_done_ = false;
  std::optional<std::latch> held_;
  std::latch may_go_on_{1};
  std::optional<Workers> workers_;
};

TEST_F(WorkersInTurn, AJobWaitsForThoseUnderWayAndNotForTenThousandOfAnotherTenant) {
  start(1);  // Of two threads, one could take the job and then be delayed by the machine.
  for (int number = 0; number < 10'000; ++number)
    workers_->submit(in("many"), job('m'));
  workers_->submit(in("one"), job('o'));

  EXPECT_LE(order().find('o'), 1U);
}

TEST_F(WorkersInTurn, AJobThatComesLaterIsTheNextOne) {
  start(1);
  Workers::Work late = job('o');
  for (int number = 0; number < 10'000; ++number) {
    if (number != 100) {
      workers_->submit(in("many"), job('m'));
      continue;
    }
    workers_->submit(in("many"), [this, call = job('c'), late = std::move(late)]() mutable {
      workers_->submit(in("one"), std::move(late));
      call();
    });
  }

  EXPECT_EQ(order().substr(99, 4), "mcom");
}

TEST_F(WorkersInTurn, TenantsGetTheSameProcessorTime) {
  using std::chrono::milliseconds;
  start(1);
  for (int number = 0; number < 3; ++number)
    workers_->submit(in("long"), job('L', milliseconds(32)));
  for (int number = 0; number < 9; ++number)
    workers_->submit(in("short"), job('s', milliseconds(12)));

  const std::string order = this->order();

  // 32 and 64 milliseconds are more than two and five times 12.
  EXPECT_EQ(order, "LsssLsssLsss") << "the one that has had less is next";
}

TEST_F(WorkersInTurn, ConsumersOfATenantTakeTurnsToo) {
  using std::chrono::milliseconds;
  start(1);
  for (int number = 0; number < 3; ++number)
    workers_->submit(in("team", "a"), job('a', milliseconds(1)));
  workers_->submit(in("team", "b"), job('b', milliseconds(1)));

  EXPECT_EQ(order(), "abaa");
}

TEST_F(WorkersInTurn, JobsOfOneConsumerKeepTheirOrder) {
  start(1);
  for (const char letter : std::string("abcdefgh")) {
    workers_->submit(in("team"), job(letter));
    workers_->submit(in("other"), job('.'));
  }

  std::string order = this->order();
  std::erase(order, '.');

  EXPECT_EQ(order, "abcdefgh");
}

TEST_F(WorkersInTurn, TheHostsOwnComeBeforeAll) {
  start(1);
  workers_->submit(in("team"), job('t'));
  workers_->submit(in("other"), job('o'));
  workers_->submit(Consumer::of_host("keys"), job('h'));

  EXPECT_EQ(order(), "hto");
}

TEST_F(WorkersInTurn, DeletionsComeFirstAndStopNobody) {
  start(1);
  for (int number = 0; number < 3; ++number)
    workers_->submit(Consumer::of_host("keys"), job('h'));
  for (int number = 0; number < 5; ++number)
    workers_->submit(in("many"), job('D'), Workers::Order::First);
  workers_->submit(in("one"), job('d'), Workers::Order::First);

  // Between two First jobs, one InTurn job.
  EXPECT_EQ(order(), "DhdhDhDDD");
}

TEST_F(WorkersInTurn, WhatSeveralWantIsDoneOnceInTheFirstTurnOfAny) {
  using std::chrono::milliseconds;
  start(1);
  for (int number = 0; number < 5; ++number)
    workers_->submit(in("many"), job('m', milliseconds(1)));
  workers_->submit_for_any({in("many"), in("one")}, job('x'));

  EXPECT_EQ(order(), "mxmmmm");
}

TEST_F(WorkersInTurn, TellWhetherAnybodyElseWaits) {
  start(1);
  EXPECT_FALSE(workers_->has_waiting_beside(in("team")));
  workers_->submit(in("team"), job('t'));
  EXPECT_FALSE(workers_->has_waiting_beside(in("team")));
  EXPECT_TRUE(workers_->has_waiting_beside(in("team", "another"))) << "of the same tenant";
  EXPECT_TRUE(workers_->has_waiting_beside(in("other")));
  workers_->submit(in("team"), job('d'), Workers::Order::First);
  EXPECT_TRUE(workers_->has_waiting_beside(in("team"))) << "a deletion waits for nobody's slice";

  EXPECT_EQ(order(), "dt");
}

TEST_F(WorkersInTurn, StoppingWaitsForNoJobThatHasNotBegun) {
  constexpr int kJobs = 10'000;
  start(1);
  std::atomic<int> begun = 0;
  const auto dropped = std::make_shared<int>(0);
  for (int number = 0; number < kJobs; ++number) {
    workers_->submit(in(std::to_string(number % 10)),
                     [&begun, dropped, burn = job('b', std::chrono::milliseconds(1))]() mutable {
                       ++begun;
                       burn();
                     });
  }

  may_go_on_.count_down();
  workers_.reset();

  EXPECT_LT(begun, kJobs);
  EXPECT_EQ(dropped.use_count(), 1);
}

}  // namespace
}  // namespace hangar::io
