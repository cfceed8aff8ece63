#include "airways/flight_run.h"

#include "base/consumer.h"
#include "base/result.h"
#include "base/time.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"

#include <gtest/gtest.h>

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
      Result<Output> parsed =
          co_await parse_printed(self.workers_, budget::unnamed_consumer(), std::move(printed));
      self.parsed_.emplace(std::move(parsed));
    };
    loop_.spawn(task(*this, std::move(text)));
    // All that the loop itself could do.
    bool is_over = false;
    const io::Loop::Timer round = loop_.after(Duration::zero(), [&] { is_over = true; });
    loop_.run_until([&] { return is_over; });
  }
  [[nodiscard]] const Result<Output>& end() {
    may_go_on_.count_down();
    loop_.run_until([this] { return loop_.spawned_count() == 0; });
    return *parsed_;
  }

  std::latch may_go_on_{1};
  io::Loop loop_;
  io::Workers workers_{loop_, 1};
  std::optional<Result<Output>> parsed_;
};

TEST_F(ParsePrinted, LeavesTheShortestTextToAWorker) {
  begin("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}");
  EXPECT_FALSE(parsed_);
  const Result<Output>& parsed = end();
  ASSERT_TRUE(parsed) << parsed.error().message();
  EXPECT_EQ(parsed->stages.size(), 1U);
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
  const Result<Output>& parsed = end();
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().kind(), ErrorKind::InvalidInput);
}

}  // namespace
}  // namespace hangar::airways
