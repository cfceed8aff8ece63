#include "airways/conversion_memory.h"

#include "base/result.h"
#include "budget/accounts.h"
#include "budget/reservation_queue.h"
#include "io/loop.h"
#include "io/task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hangar::airways {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ConversionMemoryTest : public ::testing::Test {
 protected:
  void ask(const std::string& airway, std::uint64_t bytes) {
    loop_.spawn(keep(airway, bytes, stop_.get_token()));
  }

  void run_ready() {
    bool done = false;
    loop_.post([&] { loop_.post([&] { loop_.post([&] { done = true; }); }); });
    loop_.run_until([&] { return done; });
  }

  io::Loop loop_;
  budget::Accounts accounts_{{.host_bytes_max = 100, .tenant_bytes_max = 60}};
  budget::ReservationQueue memory_{loop_, accounts_};
  std::stop_source stop_;
  std::vector<budget::Reservation> held_;
  std::vector<std::string> order_;
  std::vector<Error> refused_;

 private:
  io::Task<void> keep(std::string airway, std::uint64_t bytes, std::stop_token stop) {
    auto held = co_await reserve_for_conversion(&memory_, airway, bytes, std::move(stop));
    if (!held) {
      refused_.push_back(held.error());
      co_return;
    }
    order_.push_back(std::move(airway));
    held_.push_back(**std::move(held));
  }
};

TEST_F(ConversionMemoryTest, ConversionsTogetherHaveTheMemoryOfOneTenant) {
  ask("a", 40);
  ask("b", 40);

  run_ready();
  EXPECT_THAT(order_, ElementsAre("a"));
  EXPECT_EQ(accounts_.held_bytes(), 40);

  held_.clear();
  run_ready();
  EXPECT_THAT(order_, ElementsAre("a", "b"));
}

TEST_F(ConversionMemoryTest, ACrowdOfOneAirwayKeepsNoOtherWaitingBehindIt) {
  ask("crowd", 60);
  run_ready();
  for (int i = 0; i < 5; ++i)
    ask("crowd", 60);
  ask("victim", 60);
  run_ready();

  for (int i = 0; i < 2; ++i) {
    held_.clear();
    run_ready();
  }

  EXPECT_THAT(order_, Contains("victim"));
  stop_.request_stop();
  run_ready();
}

TEST_F(ConversionMemoryTest, SaysWhetherALaterAttemptCanSucceed) {
  ask("a", 61);
  run_ready();
  ASSERT_EQ(refused_.size(), 1U);
  EXPECT_EQ(refused_.front().kind(), ErrorKind::LimitExceeded);
  EXPECT_THAT(refused_.front().message(), HasSubstr("too large to convert"));

  ask("b", 60);
  ask("c", 1);
  run_ready();
  stop_.request_stop();
  run_ready();

  ASSERT_EQ(refused_.size(), 2U);
  EXPECT_EQ(refused_.back().kind(), ErrorKind::Unavailable);
  EXPECT_EQ(accounts_.held_bytes(), 60);
}

TEST_F(ConversionMemoryTest, NeedsNoneWhereNothingBoundsMemory) {
  std::optional<bool> holds_any;
  const auto ask_nobody = [](std::optional<bool>& out) -> io::Task<void> {
    const auto held = co_await reserve_for_conversion(nullptr, "a", 1, {});
    if (held) out = held->has_value();
  };
  loop_.spawn(ask_nobody(holds_any));
  run_ready();

  EXPECT_EQ(holds_any, false);
}

}  // namespace
}  // namespace hangar::airways
