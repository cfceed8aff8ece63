#include "airways/flight_run.h"

#include "base/consumer.h"
#include "base/limits.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/accounts.h"
#include "budget/reservation_queue.h"
#include "io/loop.h"
#include "io/run.h"
#include "io/task.h"
#include "io/workers.h"
#include "json/value.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <latch>
#include <optional>
#include <string>
#include <utility>

namespace hangar::airways {
namespace {

class ParsePrinted : public testing::Test {
 protected:
  // Starts to parse while the only worker has other work.
  void begin(std::string text) {
    workers_.submit(budget::unnamed_consumer(), [this] { may_go_on_.wait(); });
    const auto task = [](ParsePrinted& self, std::string printed) -> io::Task<void> {
      Result<PrintedOutput> parsed = co_await parse_printed(
          self.workers_, nullptr, budget::unnamed_consumer(), std::move(printed), {});
      self.parsed_.emplace(std::move(parsed));
    };
    loop_.spawn(task(*this, std::move(text)));
    // All that the loop itself could do.
    bool is_over = false;
    const io::Loop::Timer round = loop_.after(Duration::zero(), [&] { is_over = true; });
    loop_.run_until([&] { return is_over; });
  }
  [[nodiscard]] const Result<PrintedOutput>& end() {
    may_go_on_.count_down();
    loop_.run_until([this] { return loop_.spawned_count() == 0; });
    return *parsed_;
  }

  std::latch may_go_on_{1};
  io::Loop loop_;
  io::Workers workers_{loop_, 1};
  std::optional<Result<PrintedOutput>> parsed_;
};

TEST_F(ParsePrinted, LeavesTheShortestTextToAWorker) {
  begin("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}");
  EXPECT_FALSE(parsed_);
  const Result<PrintedOutput>& parsed = end();
  ASSERT_TRUE(parsed) << parsed.error().message();
  EXPECT_EQ(parsed->output.stages.size(), 1U);
}

TEST_F(ParsePrinted, LeavesAliasesThatStandForManyBytesToAWorker) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x]\n";
  for (int level = 1; level < 12; ++level) {
    const std::string before = "*a" + std::to_string(level - 1) + " ";
    std::string list;
    for (int times = 0; times < 8; ++times)
      list += (times > 0 ? ", " : "") + before;
    text += "a" + std::to_string(level) + ": &a" + std::to_string(level) + " [" + list + "]\n";
  }
  ASSERT_LT(text.size(), 1024U);
  begin(text);
  EXPECT_FALSE(parsed_);
  const Result<PrintedOutput>& parsed = end();
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().kind(), ErrorKind::InvalidInput);
}

class PrintedMemory : public testing::Test {
 protected:
  static constexpr std::uint64_t kTenantBytesMax = 32 * limits::kMiB;

  Result<PrintedOutput> parse(std::string text) {
    return io::run_to_end(
        loop_, parse_printed(workers_, &memory_,
                             {.tenant = budget::Tenant::of_namespace("team"), .name = "flight"},
                             std::move(text), {}));
  }
  // A resource whose text has two bytes for each of these numbers.
  static std::string with_numbers(std::size_t count) {
    std::string text = R"({"apiVersion":"v1","kind":"X","metadata":{"name":"a"},"x":[1)";
    for (std::size_t number = 1; number < count; ++number)
      text += ",1";
    return text + "]}";
  }

  io::Loop loop_;
  io::Workers workers_{loop_, 1};
  budget::Accounts accounts_{
      {.host_bytes_max = 2 * kTenantBytesMax, .tenant_bytes_max = kTenantBytesMax}};
  budget::ReservationQueue memory_{loop_, accounts_};
};

TEST_F(PrintedMemory, IsThatOfTheNamespaceForAsLongAsTheOutputIsHeld) {
  {
    const Result<PrintedOutput> usual = parse(with_numbers(100));
    ASSERT_TRUE(usual) << usual.error().message();
    EXPECT_EQ(accounts_.held_bytes(), 0U);
    const Result<PrintedOutput> large = parse(with_numbers(100'000));
    ASSERT_TRUE(large) << large.error().message();
    EXPECT_GT(accounts_.held_bytes(), 100'000 * sizeof(json::Value));
  }
  EXPECT_EQ(accounts_.held_bytes(), 0U);
}

TEST_F(PrintedMemory, IsRefusedWhereTheNamespaceCanNeverHaveIt) {
  const Result<PrintedOutput> parsed = parse(with_numbers(1'000'000));

  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().kind(), ErrorKind::LimitExceeded);
  EXPECT_TRUE(parsed.error().message().starts_with("the output of the flight: "))
      << parsed.error().message();
}

}  // namespace
}  // namespace hangar::airways
