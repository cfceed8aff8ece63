#include "ops/loop_watch.h"

#include "base/log.h"
#include "base/metrics.h"
#include "io/loop.h"
#include "io/part.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <latch>
#include <mutex>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::ops {
namespace {

class Lines final : public LogSink {
 public:
  void write(LogLevel /*level*/, std::string_view /*component*/, std::string_view message,
             std::span<const LogField> fields) override {
    std::string line(message);
    for (const LogField& field : fields) {
      if (const auto* text = std::get_if<std::string>(&field.value)) line += " " + *text;
    }
    const std::scoped_lock lock(mutex_);
    lines_.push_back(std::move(line));
  }
  [[nodiscard]] std::ptrdiff_t count(const std::string& line) const {
    const std::scoped_lock lock(mutex_);
    return std::ranges::count(lines_, line);
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

class LoopWatchTest : public ::testing::Test {
 protected:
  Lines lines_;
  Metrics metrics_;
  io::Loop main_;
  io::Loop watching_;
  LoopWatch watch_{main_, metrics_, Log(lines_, "loop")};
};

TEST_F(LoopWatchTest, FindsATurnThatDoesNotEndAndSaysForWhomItIsAndAtWhat) {
  std::latch is_held(1);
  std::latch may_end(1);
  std::jthread main([&] {
    main_.post([&] {
      const io::Loop::Activity activity(main_, "widget default/a");
      const io::Part part(main_, "readiness");
      is_held.count_down();
      may_end.wait();
    });
    main_.run();
  });
  is_held.wait();
  std::string why;

  EXPECT_TRUE(watch_.check());
  watch_.start(watching_, std::chrono::seconds(5), [&](const std::string& said) { why = said; });
  watching_.run_until([&] { return !why.empty(); });

  EXPECT_EQ(why, "the main loop has not come back for 5s from widget default/a: readiness");
  EXPECT_FALSE(watch_.check());
  EXPECT_EQ(lines_.count("the main loop is held up widget default/a: readiness"), 1);
  may_end.count_down();
  main_.stop();
  main.join();
  EXPECT_EQ(lines_.count("a turn of the main loop took long widget default/a: readiness"), 1);
}

TEST_F(LoopWatchTest, FindsALoopThatIsHeldBetweenItsTurns) {
  // The main loop never runs although the watch posts a task to it.
  std::string why;

  watch_.start(watching_, std::chrono::seconds(2), [&](const std::string& said) { why = said; });
  watching_.run_until([&] { return !why.empty(); });

  EXPECT_EQ(why, "the main loop has not come back for 2s");
}

TEST_F(LoopWatchTest, TakesAnIdleLoopForNoDeadOne) {
  std::jthread main([&] { main_.run(); });
  bool is_dead = false;
  bool is_over = false;

  watch_.start(watching_, std::chrono::seconds(2), [&](const std::string&) { is_dead = true; });
  const io::Loop::Timer end = watching_.after(std::chrono::seconds(5), [&] { is_over = true; });
  watching_.run_until([&] { return is_over || is_dead; });

  EXPECT_FALSE(is_dead);
  main_.stop();
}

TEST_F(LoopWatchTest, MeasuresHowLongTheLoopKeepsOthersWaiting) {
  std::jthread main([&] { main_.run(); });
  const auto observed = [this] {
    return metrics_.histogram("hangar_loop_delay_seconds", "", {})
        .snapshot()
        .cumulative_counts.back();
  };

  watch_.start(watching_, std::chrono::seconds(30), [](const std::string&) {});
  watching_.run_until([&] { return observed() > 0; });

  EXPECT_GE(observed(), 1U);
  main_.stop();
}

TEST_F(LoopWatchTest, TakesABusyLoopForNoDeadOne) {
  std::jthread main([&](const std::stop_token& stop) {
    std::function<void()> turn = [&] {
      if (stop.stop_requested()) return main_.stop();
      main_.post([&] { turn(); });
    };
    main_.post([&] { turn(); });
    main_.run();
  });
  bool is_dead = false;
  bool is_over = false;

  watch_.start(watching_, std::chrono::seconds(1), [&](const std::string&) { is_dead = true; });
  const io::Loop::Timer end = watching_.after(std::chrono::seconds(3), [&] { is_over = true; });
  watching_.run_until([&] { return is_over || is_dead; });

  EXPECT_FALSE(is_dead);
}

TEST_F(LoopWatchTest, CountsTurnsAndExceptions) {
  bool is_done = false;
  main_.post([&] {
    const io::Loop::Activity activity(main_, "widget default/a");
    throw std::runtime_error("bug");
  });
  main_.post([&] { is_done = true; });

  main_.run_until([&] { return is_done; });

  EXPECT_EQ(
      lines_.count("a task failed with an exception widget default/a unexpected exception: bug"),
      1);
  EXPECT_EQ(metrics_.counter("hangar_loop_exceptions_total", "").value(), 1);
  EXPECT_EQ(
      metrics_.histogram("hangar_loop_turn_seconds", "", {}).snapshot().cumulative_counts.back(),
      2U);
}

}  // namespace
}  // namespace hangar::ops
