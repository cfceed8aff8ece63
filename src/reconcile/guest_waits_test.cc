#include "reconcile/guest_waits.h"

#include "base/result.h"
#include "base/time.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "budget/fair_slots.h"
#include "budget/rates.h"
#include "budget/reservation_queue.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/run.h"
#include "io/task.h"
#include "json/value.h"
#include "reconcile/conditions.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hangar::reconcile {
namespace {

const WallTime kWall = WallTime() + std::chrono::hours(24 * 365);

class GuestWaitsTest : public ::testing::Test {
 protected:
  static budget::Consumer consumer(std::string name) {
    return {.tenant = budget::Tenant::of_namespace("team"), .name = std::move(name)};
  }

  // A guest that waits for memory, and has it until the test lets it go.
  io::Task<Result<bool>> guest(std::string name, std::uint64_t bytes, std::stop_token stop = {}) {
    Result<budget::Reservation> memory =
        co_await queue_.reserve(consumer(std::move(name)), bytes, std::move(stop));
    if (!memory) co_return std::unexpected(std::move(memory).error());
    has_memory_ = true;
    co_return co_await let_go_.wait();
  }
  io::Task<void> told(std::string name, std::uint64_t bytes, std::stop_token stop = {}) {
    const Result<bool> ended = co_await tell_waits(
        &waits_, consumer(name), [this](GuestWait wait) { return write(std::move(wait)); },
        guest(name, bytes, std::move(stop)));
    has_ended_ = true;
    kind_ = ended ? std::nullopt : std::optional(ended.error().kind());
  }
  io::Task<void> write(GuestWait wait) {
    brakes_.push_back(wait.brake);
    writes_.push_back(std::move(wait.shortage));
    co_return;
  }

  io::Loop loop_;
  budget::Accounts accounts_{{.host_bytes_max = 100, .tenant_bytes_max = 80}};
  budget::ReservationQueue queue_{loop_, accounts_};
  budget::Rates rates_;
  GuestWaits waits_{
      loop_,
      &queue_,
      &rates_,
      {.memory = std::chrono::milliseconds(10), .processor = std::chrono::milliseconds(10)}};
  io::OneShot<bool> let_go_{loop_};
  std::vector<std::optional<budget::Shortage>> writes_;
  std::vector<std::optional<budget::RateLimit>> brakes_;
  bool has_memory_ = false;
  bool has_ended_ = false;
  std::optional<ErrorKind> kind_;
};

TEST_F(GuestWaitsTest, WritesThatAGuestWaitsAndThatItDoesNoLonger) {
  std::optional<budget::Reservation> taken = accounts_.reserve(consumer("operator/a"), 60).value();
  loop_.spawn(told("instance/b", 30));
  loop_.run_until([&] { return writes_.size() == 1; });
  ASSERT_TRUE(writes_[0].has_value());
  EXPECT_EQ(writes_[0]->level, budget::Shortage::Level::Tenant);
  EXPECT_EQ(writes_[0]->wanted_bytes, 30U);
  EXPECT_EQ(writes_[0]->free_bytes, 20U);
  EXPECT_FALSE(has_memory_);

  taken.reset();
  loop_.run_until([&] { return writes_.size() == 2; });

  EXPECT_TRUE(has_memory_);
  EXPECT_FALSE(writes_[1].has_value());
  EXPECT_FALSE(has_ended_) << "the guest still runs";
  let_go_.set(true);
  loop_.run_until([&] { return has_ended_; });
  EXPECT_FALSE(kind_.has_value());
  EXPECT_EQ(waits_.told(consumer("instance/b")), nullptr);
}

TEST_F(GuestWaitsTest, WritesNothingForAGuestThatHasItsMemoryAtOnce) {
  let_go_.set(true);
  loop_.spawn(told("instance/b", 30));
  loop_.run_until([&] { return has_ended_; });

  EXPECT_TRUE(has_memory_);
  EXPECT_TRUE(writes_.empty());
}

TEST_F(GuestWaitsTest, AStopEndsTheWait) {
  const std::optional<budget::Reservation> taken =
      accounts_.reserve(consumer("operator/a"), 60).value();
  std::stop_source stop;
  loop_.spawn(told("instance/b", 30, stop.get_token()));
  stop.request_stop();
  loop_.run_until([&] { return has_ended_; });

  EXPECT_EQ(kind_, ErrorKind::Cancelled);
  EXPECT_TRUE(writes_.empty());
  EXPECT_TRUE(queue_.waits().empty());
}

TEST_F(GuestWaitsTest, ListenersHearOfTheirOwnConsumers) {
  std::vector<std::string> heard;
  waits_.listen("operator/",
                [&](const budget::Consumer& consumer) { heard.push_back(consumer.name); });
  std::optional<budget::Reservation> taken = accounts_.reserve(consumer("operator/a"), 60).value();
  std::stop_source stop;
  const auto wait = [&](std::string name) -> io::Task<void> {
    (void)co_await guest(std::move(name), 30, stop.get_token());
  };
  loop_.spawn(wait("operator/b"));
  loop_.spawn(wait("workflow/c"));
  loop_.run_until([&] { return heard.size() == 1; });

  EXPECT_EQ(heard, std::vector<std::string>{"operator/b"});
  EXPECT_NE(waits_.told(consumer("operator/b")), nullptr);
  EXPECT_EQ(waits_.told(consumer("workflow/c")), nullptr);
  stop.request_stop();
  loop_.run_until([&] { return loop_.spawned_count() == 0; });
}

TEST_F(GuestWaitsTest, WritesThatAGuestIsBrakedAndThatItIsNoLonger) {
  std::optional<budget::RateLimit> limit =
      budget::RateLimit{.millicores = 1, .set_by = "TenantPolicy p"};
  rates_.limit_tenants([&limit](const budget::Tenant&) { return limit; });
  budget::FairSlots slots(loop_, {.slots = 8});
  slots.brake(rates_);
  rates_.charge(consumer("instance/b").tenant, 3'600'000'000'000, io::Loop::now());
  const auto braked = [&]() -> io::Task<Result<bool>> {
    const auto slot = co_await slots.acquire(consumer("instance/b"), {}, {});
    has_memory_ = slot.has_value();
    co_return co_await let_go_.wait();
  };
  const auto telling = [&]() -> io::Task<void> {
    (void)co_await tell_waits(
        &waits_, consumer("instance/b"), [this](GuestWait wait) { return write(std::move(wait)); },
        braked());
    has_ended_ = true;
  };
  loop_.spawn(telling());
  loop_.run_until([&] { return brakes_.size() == 1; });
  EXPECT_EQ(brakes_[0], (budget::RateLimit{.millicores = 1, .set_by = "TenantPolicy p"}));
  EXPECT_FALSE(writes_[0].has_value()) << "it has its memory";
  EXPECT_FALSE(has_memory_);

  limit.reset();
  loop_.run_until([&] { return brakes_.size() == 2; });

  EXPECT_TRUE(has_memory_);
  EXPECT_FALSE(brakes_[1].has_value());
  let_go_.set(true);
  loop_.run_until([&] { return has_ended_; });
}

TEST(ProcessorWait, IsSaidWithItsBudgetAndPolicyAndBecomesFalse) {
  json::Value status = json::Object();
  put_processor_wait(status, nullptr, 1, kWall);
  EXPECT_EQ(find_condition(status, kWaitingForProcessorTime), nullptr);

  const budget::RateLimit brake{.millicores = 100, .set_by = "TenantPolicy p"};
  put_processor_wait(status, &brake, 3, kWall);
  const json::Value* const condition = find_condition(status, kWaitingForProcessorTime);
  ASSERT_NE(condition, nullptr);
  EXPECT_EQ(json::string_at(*condition, {"status"}), "True");
  EXPECT_EQ(json::string_at(*condition, {"reason"}), "NamespaceProcessorTime");
  EXPECT_EQ(json::string_at(*condition, {"message"}),
            "the guests of its namespace have used more than the 100m of a core that they may use "
            "on average (budgets.cpu of TenantPolicy p); the guest continues when the average "
            "is below it");
  put_no_wait(status, 3, kWall);
  EXPECT_EQ(json::string_at(*find_condition(status, kWaitingForProcessorTime), {"status"}),
            "False");
  EXPECT_EQ(json::string_at(*find_condition(status, kWaitingForProcessorTime), {"reason"}),
            "WithinBudget");
}

TEST(MemoryWait, IsSaidWithWhatIsNeededAndOfWhat) {
  json::Value status = json::Object();
  const budget::Shortage shortage{.level = budget::Shortage::Level::Tenant,
                                  .wanted_bytes = 64ULL << 20U,
                                  .free_bytes = 32ULL << 20U,
                                  .limit_bytes = 512ULL << 20U,
                                  .limited_by = "TenantPolicy a"};
  put_memory_wait(status, &shortage, ". Do this", 3, kWall);

  const json::Value* const condition = find_condition(status, kWaitingForMemory);
  ASSERT_NE(condition, nullptr);
  EXPECT_EQ(json::string_at(*condition, {"status"}), "True");
  EXPECT_EQ(json::string_at(*condition, {"reason"}), "NamespaceMemory");
  EXPECT_EQ(json::string_at(*condition, {"message"}),
            "64 MiB are needed, 32 MiB of the 512 MiB of its namespace (TenantPolicy a) are free; "
            "the guest continues when others release memory. Do this");
  EXPECT_EQ(json::int_at(*condition, {"observedGeneration"}), 3);
}

TEST(MemoryWait, BecomesFalseAndIsNotThereForAGuestThatNeverWaited) {
  json::Value status = json::Object();
  put_memory_wait(status, nullptr, {}, 1, kWall);
  EXPECT_EQ(find_condition(status, kWaitingForMemory), nullptr);

  const budget::Shortage shortage{};
  put_memory_wait(status, &shortage, {}, 1, kWall);
  EXPECT_EQ(json::string_at(*find_condition(status, kWaitingForMemory), {"reason"}), "HostMemory");
  put_memory_wait(status, nullptr, {}, 1, kWall);
  EXPECT_EQ(json::string_at(*find_condition(status, kWaitingForMemory), {"status"}), "False");
}

}  // namespace
}  // namespace hangar::reconcile
