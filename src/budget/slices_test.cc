#include "budget/slices.h"

#include "base/result.h"
#include "base/time.h"
#include "budget/consumer.h"
#include "budget/rates.h"
#include "io/cpu_time.h"
#include "io/loop.h"
#include "io/task.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hangar::budget {
namespace {

// Records what happens on the loop, in order: slices, by the name of their job, and rounds.
class SlicesTest : public ::testing::Test {
 protected:
  static io::Task<void> work(SlicesTest& test, std::string tenant, std::string name,
                             std::size_t slices, std::stop_token stop) {
    Slices::Job job = test.slices_->begin(Tenant::of_namespace(std::move(tenant)));
    for (std::size_t index = 0; index < slices; ++index) {
      if (!co_await job.turn(stop)) {
        test.happened_.push_back(name + " cancelled");
        break;
      }
      test.happened_.push_back(name);
      for (int part = 0; part < 4; ++part) {
        EXPECT_FALSE(job.is_over());
        job.add(kSliceBytes / 4);
      }
      EXPECT_TRUE(job.is_over());
    }
    --test.running_;
  }

  void start(std::string tenant, std::string name, std::size_t slices, std::stop_token stop = {}) {
    ++running_;
    loop_.spawn(work(*this, std::move(tenant), std::move(name), slices, std::move(stop)));
  }
  void run() {
    loop_.run_until([this] { return running_ == 0; });
  }

  io::Loop loop_;
  std::optional<Slices> slices_{loop_};
  std::vector<std::string> happened_;
  int running_ = 0;
};

TEST_F(SlicesTest, OthersHaveTheirTurnBetweenTwoSlices) {
  // A task that needs the loop all the time, as the Lease does.
  bool is_over = false;
  std::function<void()> tick = [&] {
    happened_.emplace_back("round");
    if (!is_over) loop_.post([&] { tick(); });
  };
  loop_.post([&] { tick(); });
  for (const char* tenant : {"a", "b", "c"})
    for (int index = 0; index < 20; ++index)
      start(tenant, "slice", 5);
  run();
  is_over = true;
  loop_.run_until([&] { return happened_.back() == "round"; });

  int longest = 0;
  int row = 0;
  for (const std::string& what : happened_) {
    row = what == "slice" ? row + 1 : 0;
    longest = std::max(longest, row);
  }
  EXPECT_LE(longest, 1);
  EXPECT_EQ(std::ranges::count(happened_, "slice"), 3 * 20 * 5);
}

TEST_F(SlicesTest, TenantsTakeTurnsHoweverManyJobsOneHas) {
  for (int index = 0; index < 50; ++index)
    start("greedy", "greedy", 10);
  start("modest", "modest", 3);
  run();
  const auto last = std::ranges::find(happened_.rbegin(), happened_.rend(), "modest").base();
  EXPECT_LE(last - happened_.begin(), 2 * 3 + 2);
}

TEST_F(SlicesTest, OneJobOfATenantIsDoneBeforeTheNextBegins) {
  for (const char* name : {"1", "2", "3"})
    start("a", name, 3);
  run();
  EXPECT_EQ(happened_, (std::vector<std::string>{"1", "1", "1", "2", "2", "2", "3", "3", "3"}));
}

TEST_F(SlicesTest, WhoDoesNotWaitAnyMoreLosesItsPlace) {
  std::stop_source stop;
  start("a", "first", 2);
  start("a", "gone", 2, stop.get_token());
  start("b", "other", 2);
  stop.request_stop();
  run();
  EXPECT_EQ(std::ranges::count(happened_, "gone cancelled"), 1);
  EXPECT_EQ(std::ranges::count(happened_, "gone"), 0);
  EXPECT_EQ(std::ranges::count(happened_, "first"), 2);
  EXPECT_EQ(std::ranges::count(happened_, "other"), 2);
}

TEST_F(SlicesTest, WhatFitsIntoOneSliceWaitsForNobody) {
  bool has_run = false;
  const auto little = [](Slices& slices, bool& done) -> io::Task<void> {
    Slices::Job job = slices.begin(Tenant::of_namespace("a"));
    EXPECT_TRUE((co_await job.turn({})).has_value());
    job.add(1000);
    done = true;
  };
  loop_.spawn(little(*slices_, has_run));
  EXPECT_TRUE(has_run);
  loop_.run_until([] { return true; });
}

constexpr std::chrono::milliseconds kWork{2};

// Works for at least kWork of this thread's processor time.
void burn() {
  const Duration end = io::thread_cpu_time() + kWork;
  while (io::thread_cpu_time() < end) {
  }
}

TEST_F(SlicesTest, ChargeTheTenantWithWhatItsJobsTakeAndNothingElse) {
  Rates rates;
  slices_.emplace(loop_, &rates);
  const auto used_by = [&](const char* tenant) {
    return rates.use_of(Tenant::of_namespace(tenant), io::Loop::now()).total;
  };
  const auto job_of = [](Slices& slices, std::string tenant, int& running) -> io::Task<void> {
    ++running;
    Slices::Job job = slices.begin(Tenant::of_namespace(std::move(tenant)));
    burn();  // Before its turn, it does not work.
    for (int slice = 0; slice < 3; ++slice) {
      EXPECT_TRUE((co_await job.turn({})).has_value());
      burn();
      job.add(kSliceBytes);
    }
    const Slices::Job moved = std::move(job);
    --running;
  };
  loop_.spawn(job_of(*slices_, "a", running_));
  loop_.spawn(job_of(*slices_, "b", running_));
  run();
  EXPECT_GE(used_by("a"), 3 * kWork);
  EXPECT_GE(used_by("b"), 3 * kWork);
  EXPECT_EQ(used_by("c"), Duration::zero());

  const auto begins_another = [](Slices& slices, int& running) -> io::Task<void> {
    ++running;
    Slices::Job job = slices.begin(Tenant::of_namespace("begins"));
    EXPECT_TRUE((co_await job.turn({})).has_value());
    Slices::Job other = slices.begin(Tenant::of_namespace("begun"));
    EXPECT_TRUE((co_await other.turn({})).has_value());
    burn();
    --running;
  };
  loop_.spawn(begins_another(*slices_, running_));
  run();
  EXPECT_GE(used_by("begun"), kWork);
  EXPECT_LT(used_by("begins"), kWork) << "it pays for itself";

  const Duration before = used_by("a");
  const auto waits = [](Slices& slices, std::stop_token stop) -> io::Task<void> {
    Slices::Job job = slices.begin(Tenant::of_namespace("a"));
    EXPECT_FALSE((co_await job.turn(std::move(stop))).has_value());
    burn();
  };
  std::stop_source stop;
  stop.request_stop();
  loop_.spawn(waits(*slices_, stop.get_token()));
  EXPECT_EQ(used_by("a"), before) << "it got no turn";
}

TEST_F(SlicesTest, ChargeNothingThatTheLoopReports) {
  Rates rates;
  slices_.emplace(loop_, &rates);
  Duration reported{};
  loop_.set_on_work([&](const Tenant&, Duration took) { reported += took; });
  const auto paid_for = [](io::Loop& loop, Slices& slices, int& running) -> io::Task<void> {
    ++running;
    const io::Loop::Activity activity(loop, "request", Tenant::of_namespace("a"));
    Slices::Job job = slices.begin(Tenant::of_namespace("a"));
    for (int slice = 0; slice < 3; ++slice) {
      EXPECT_TRUE((co_await job.turn({})).has_value());
      burn();
      job.add(kSliceBytes);
    }
    --running;
  };
  loop_.spawn(paid_for(loop_, *slices_, running_));
  run();
  EXPECT_GE(reported, 3 * kWork);
  EXPECT_EQ(rates.use_of(Tenant::of_namespace("a"), io::Loop::now()).total, Duration::zero());
}

}  // namespace
}  // namespace hangar::budget
