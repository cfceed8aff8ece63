#include "budget/reservation_queue.h"

#include "base/result.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "io/loop.h"
#include "io/task.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hangar::budget {
namespace {

using namespace std::chrono_literals;

class ReservationQueueTest : public ::testing::Test {
 protected:
  // Stops the tasks that still wait: nothing else destroys them.
  void TearDown() override {
    loop_.run_until([this] {
      kept_.clear();
      return queue_.waits().empty();
    });
  }

  Consumer consumer(std::string namespace_name) {
    return {.tenant = Tenant::of_namespace(std::move(namespace_name)), .name = "operator/a"};
  }

  void reserve(std::string namespace_name, std::uint64_t bytes, std::stop_token stop = {}) {
    loop_.spawn(keep(std::move(namespace_name), bytes, std::move(stop)));
  }

  void run_ready() {
    bool done = false;
    loop_.post([&] { loop_.post([&] { loop_.post([&] { done = true; }); }); });
    loop_.run_until([&] { return done; });
  }

  io::Loop loop_;
  Accounts accounts_{{.host_bytes_max = 100, .tenant_bytes_max = 80}};
  ReservationQueue queue_{loop_, accounts_, {.patience = 10ms, .aside_max = 100ms}};
  std::multimap<std::string, Reservation> kept_;
  std::string order_;
  std::vector<ErrorKind> refused_;
  std::vector<Shortage> shortages_;

 private:
  io::Task<void> keep(std::string name, std::uint64_t bytes, std::stop_token stop) {
    auto reservation = co_await queue_.reserve(
        consumer(name), bytes, std::move(stop),
        [this](const Shortage& shortage) { shortages_.push_back(shortage); });
    if (!reservation) {
      refused_.push_back(reservation.error().kind());
      co_return;
    }
    order_ += name;
    kept_.emplace(std::move(name), *std::move(reservation));
  }
};

TEST_F(ReservationQueueTest, WhatDoesNotFitWaitsUntilItDoes) {
  reserve("a", 80);
  reserve("b", 30);
  reserve("c", 10);
  run_ready();
  EXPECT_EQ(order_, "ac");
  ASSERT_EQ(shortages_.size(), 1U);
  EXPECT_EQ(shortages_[0].level, Shortage::Level::Host);
  EXPECT_EQ(shortages_[0].free_bytes, 20U);
  EXPECT_EQ(queue_.waiting_count(), 1U);

  kept_.erase("a");
  run_ready();

  EXPECT_EQ(order_, "acb");
  EXPECT_EQ(accounts_.held_bytes(), 40U);
}

// Small waiters take all bytes that become free, again and again.
TEST_F(ReservationQueueTest, FewBytesAtATimeDoNotKeepALargeWaiterFromItsPartForEver) {
  for (int index = 0; index < 10; ++index)
    reserve("small", 8);
  reserve("large", 40);
  loop_.run_until([this] {
    const auto small = kept_.find("small");
    if (small != kept_.end()) {
      kept_.erase(small);
      reserve("small", 8);
    }
    return kept_.contains("large");
  });
  EXPECT_LE(accounts_.held_bytes(), 100U);
  EXPECT_TRUE(accounts_.reserve(consumer("another"), 100 - accounts_.held_bytes()).has_value())
      << "nothing is set aside any more";
}

TEST_F(ReservationQueueTest, NothingIsSetAsideForMoreThanAnEqualPart) {
  reserve("a", 80);
  reserve("b", 60);  // Of two, each may have 50.
  bool is_late = false;
  const io::Loop::Timer timer = loop_.after(50ms, [&is_late] { is_late = true; });
  loop_.run_until([&is_late] { return is_late; });
  EXPECT_TRUE(accounts_.reserve(consumer("c"), 20).has_value());
}

TEST_F(ReservationQueueTest, WhatIsSetAsideIsGivenBackIfItDoesNotBecomeEnough) {
  reserve("a", 80);
  reserve("b", 40);
  loop_.run_until([this] { return !accounts_.reserve(consumer("c"), 20).has_value(); });
  loop_.run_until([this] { return accounts_.reserve(consumer("c"), 20).has_value(); });

  // So it is if the waiter goes.
  std::stop_source stop;
  reserve("d", 30, stop.get_token());
  loop_.run_until([this] { return !accounts_.reserve(consumer("c"), 20).has_value(); });
  stop.request_stop();
  kept_.erase("a");
  loop_.run_until([this] { return kept_.contains("b"); });
  EXPECT_TRUE(accounts_.reserve(consumer("c"), 60).has_value());
}

TEST_F(ReservationQueueTest, ShowsWhoWaitsAndForWhat) {
  std::vector<std::size_t> counts;
  queue_.set_on_wait([&](const Consumer& waiting) {
    EXPECT_EQ(waiting, consumer("b"));
    counts.push_back(queue_.waits().size());
  });
  reserve("a", 80);
  reserve("b", 30);
  run_ready();
  ASSERT_TRUE(queue_.waits().contains(consumer("b")));
  EXPECT_EQ(queue_.waits().find(consumer("b"))->second.wanted_bytes, 30U);

  kept_.erase("a");
  run_ready();

  EXPECT_TRUE(queue_.waits().empty());
  EXPECT_EQ(counts, (std::vector<std::size_t>{1, 0}));
}

TEST_F(ReservationQueueTest, KnowsTheLargestWaitByWhatIsShort) {
  reserve("a", 75);
  reserve("a", 10);  // 5 of its namespace are left.
  reserve("a", 20);
  std::stop_source stop;
  reserve("b", 40, stop.get_token());  // 25 of the host are left.
  reserve("c", 30);
  run_ready();

  EXPECT_EQ(queue_.waiting_count(), 4U);
  ASSERT_NE(queue_.largest_wait(Tenant::host()), nullptr);
  EXPECT_EQ(queue_.largest_wait(Tenant::host())->wanted_bytes, 40U);
  ASSERT_NE(queue_.largest_wait(Tenant::of_namespace("a")), nullptr);
  EXPECT_EQ(queue_.largest_wait(Tenant::of_namespace("a"))->wanted_bytes, 20U);
  EXPECT_EQ(queue_.largest_wait(Tenant::of_namespace("b")), nullptr)
      << "it lacks what is the host's";

  stop.request_stop();
  run_ready();
  EXPECT_EQ(queue_.largest_wait(Tenant::host())->wanted_bytes, 30U);
  kept_.clear();
  run_ready();
  EXPECT_EQ(queue_.largest_wait(Tenant::host()), nullptr);
  EXPECT_EQ(queue_.largest_wait(Tenant::of_namespace("a")), nullptr);
}

TEST_F(ReservationQueueTest, SaysWhoLacksMemoryUnlessTheWaiterIsToldItself) {
  std::vector<Consumer> lacking;
  queue_.set_on_shortage(
      [&](const Consumer& waiting, const Shortage& /*why*/) { lacking.push_back(waiting); });
  std::stop_source stop;
  reserve("a", 80);
  reserve("b", 30, stop.get_token());
  run_ready();
  EXPECT_TRUE(lacking.empty());

  const auto plain = [&]() -> io::Task<void> {
    (void)co_await queue_.reserve(consumer("c"), 40, stop.get_token());
  };
  loop_.spawn(plain());
  run_ready();

  EXPECT_EQ(lacking, std::vector{consumer("c")});
  stop.request_stop();
  run_ready();
}

TEST_F(ReservationQueueTest, IsFairBetweenTenants) {
  reserve("a", 80);
  run_ready();
  for (int index = 0; index < 3; ++index)
    reserve("b", 30);
  reserve("d", 30);
  run_ready();

  kept_.erase("a");
  run_ready();

  EXPECT_EQ(order_, "abdb");
  kept_.clear();
  run_ready();
  EXPECT_EQ(order_, "abdbb");
}

TEST_F(ReservationQueueTest, ATenantAtItsLimitHoldsUpNobody) {
  reserve("a", 80);
  reserve("a", 10);
  reserve("b", 10);
  run_ready();

  EXPECT_EQ(order_, "ab");
  kept_.erase("a");
  run_ready();
  EXPECT_EQ(order_, "aba");
}

TEST_F(ReservationQueueTest, RefusesWhatNeverFits) {
  reserve("a", 81);
  run_ready();

  EXPECT_EQ(refused_, std::vector{ErrorKind::LimitExceeded});
}

TEST_F(ReservationQueueTest, AStopEndsTheWait) {
  std::stop_source stop;
  reserve("a", 80);
  reserve("b", 80, stop.get_token());
  run_ready();

  stop.request_stop();
  run_ready();

  EXPECT_EQ(refused_, std::vector{ErrorKind::Cancelled});
  EXPECT_EQ(queue_.waiting_count(), 0U);
}

TEST_F(ReservationQueueTest, HearsOfWhatAnotherThreadFrees) {
  reserve("a", 80);
  run_ready();
  reserve("b", 80);
  run_ready();
  std::jthread other([held = std::move(kept_.begin()->second)]() mutable {
    ASSERT_TRUE(held.resize(20));
    ASSERT_TRUE(held.resize(0));
  });

  loop_.run_until([this] { return order_ == "ab"; });
  other.join();

  EXPECT_EQ(accounts_.held_bytes(), 80U);
}

}  // namespace
}  // namespace hangar::budget
