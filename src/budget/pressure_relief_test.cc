#include "budget/pressure_relief.h"

#include "base/metrics.h"
#include "budget/memory_pressure.h"
#include "budget/pressure_watch.h"
#include "budget/test_machine_files.h"
#include "io/loop.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace hangar::budget {
namespace {

class PressureReliefTest : public MachineFilesTest {
 protected:
  PressureReliefTest() {
    write("proc/self/cgroup", "0::/pod\n");
    write("sys/fs/cgroup/pod/memory.max", "100000000\n");
    use(50);
    pressure_.emplace(loop_, PressureWatch::Options{.gauge = MemoryGauge(root_),
                                                    .interval = std::chrono::milliseconds(1)});
    relief_.emplace(*pressure_, metrics_,
                    std::vector<PressureRelief::Keeper>{
                        {.name = "few",
                         .give_back =
                             [this] {
                               ++asked_;
                               return std::size_t{2};
                             }},
                        {.name = "none", .give_back = [] { return std::size_t{0}; }}});
  }

  void use(int percent) const {
    write("sys/fs/cgroup/pod/memory.current", std::to_string(percent * 1000000) + "\n");
  }
  // Until it has looked several times.
  void look_again() {
    int left = 5;
    io::Loop::Timer timer;
    std::function<void()> wait = [&] {
      if (--left > 0) timer = loop_.after(std::chrono::milliseconds(2), wait);
    };
    wait();
    loop_.run_until([&left] { return left == 0; });
  }
  double freed(const std::string& what) {
    return metrics_.counter("hangar_pressure_freed_total", "", {{"what", what}}).value();
  }

  io::Loop loop_;
  Metrics metrics_;
  int asked_ = 0;
  std::optional<PressureWatch> pressure_;
  std::optional<PressureRelief> relief_;
};

TEST_F(PressureReliefTest, AsksNobodyWhileThereIsMemory) {
  look_again();
  EXPECT_EQ(asked_, 0);
}

TEST_F(PressureReliefTest, AsksAllWhenMemoryIsShortAndCountsWhatTheyFree) {
  use(95);
  look_again();
  EXPECT_GT(asked_, 0);
  EXPECT_EQ(freed("few"), 2.0 * asked_);
  EXPECT_EQ(freed("none"), 0);

  use(50);
  look_again();
  const int before = asked_;
  look_again();
  EXPECT_EQ(asked_, before);
}

}  // namespace
}  // namespace hangar::budget
