#include "budget/pressure_watch.h"

#include "budget/memory_pressure.h"
#include "budget/test_machine_files.h"
#include "io/loop.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hangar::budget {
namespace {

constexpr std::uint64_t kMegabyte = 1'000'000;

class PressureWatchTest : public MachineFilesTest {
 protected:
  PressureWatchTest() {
    write("proc/self/cgroup", "0::/pod\n");
    write("sys/fs/cgroup/pod/memory.max", "100000000\n");
    use(50);
    watch_.emplace(loop_, PressureWatch::Options{.gauge = MemoryGauge(root_),
                                                 .interval = std::chrono::milliseconds(1)});
  }

  void use(int percent) const {
    write("sys/fs/cgroup/pod/memory.current", std::to_string(percent * 1000000) + "\n");
  }
  [[nodiscard]] std::unique_ptr<PressureWatch::Listening> listen(
      std::vector<PressureGuard::Advice>& heard, std::uint64_t guest_bytes) {
    return watch_->listen(
        {.guest_bytes = [guest_bytes] { return guest_bytes; },
         .on_advice = [&heard](const PressureGuard::Advice& advice) { heard.push_back(advice); }});
  }

  io::Loop loop_;
  std::optional<PressureWatch> watch_;
};

// Each with a guard of its own would each give back as much as is too much.
TEST_F(PressureWatchTest, GivesAllListenersTheSameAdviceOfOneReading) {
  use(95);
  std::vector<PressureGuard::Advice> one;
  std::vector<PressureGuard::Advice> other;
  const auto first = listen(one, 3 * kMegabyte);
  const auto second = listen(other, 2 * kMegabyte);

  loop_.run_until([&] { return other.size() == 3; });

  EXPECT_EQ(one, other);
  EXPECT_EQ(one.front().give_back_bytes, 5 * kMegabyte) << "at most what all of them hold";
  EXPECT_TRUE(one.front().is_short);
  EXPECT_TRUE(one.front().drop_page_cache);
  EXPECT_FALSE(one.back().drop_page_cache);
}

TEST_F(PressureWatchTest, TellsThatThereIsEnoughToo) {
  std::vector<PressureGuard::Advice> heard;
  const auto listening = listen(heard, kMegabyte);

  loop_.run_until([&] { return heard.size() == 2; });

  EXPECT_EQ(heard.back(), PressureGuard::Advice());
}

TEST_F(PressureWatchTest, NoLongerTellsWhoHasEnded) {
  std::vector<PressureGuard::Advice> one;
  std::vector<PressureGuard::Advice> other;
  auto first = listen(one, 0);
  const auto second = listen(other, 0);
  loop_.run_until([&] { return !one.empty(); });

  first.reset();
  const std::size_t before = one.size();
  other.clear();
  loop_.run_until([&] { return other.size() == 2; });

  EXPECT_EQ(one.size(), before);
}

}  // namespace
}  // namespace hangar::budget
