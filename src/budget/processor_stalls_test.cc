#include "budget/processor_stalls.h"

#include "base/time.h"
#include "budget/test_machine_files.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace hangar::budget {
namespace {

using std::chrono::seconds;

constexpr Instant kStart{std::chrono::hours(1)};

class ProcessorStallsTest : public MachineFilesTest {
 protected:
  void waited(std::string_view file, int microseconds) const {
    write(file, fmt::format("some avg10=0.00 avg60=0.00 avg300=0.00 total={}\n", microseconds));
  }
};

TEST_F(ProcessorStallsTest, AreUnknownAtFirstAndWithoutPsi) {
  ProcessorStalls stalls(root_);
  EXPECT_EQ(stalls.are_processors_short(kStart), std::nullopt);
  EXPECT_EQ(stalls.are_processors_short(kStart + seconds(2)), std::nullopt);
  waited("proc/pressure/cpu", 5);
  EXPECT_EQ(stalls.are_processors_short(kStart + seconds(4)), std::nullopt);
}

TEST_F(ProcessorStallsTest, AreAConsiderablePartOfTheTime) {
  ProcessorStalls stalls(root_);
  waited("proc/pressure/cpu", 1'000'000);
  (void)stalls.are_processors_short(kStart);
  waited("proc/pressure/cpu", 1'090'000);
  EXPECT_EQ(stalls.are_processors_short(kStart + seconds(2)), false);
  waited("proc/pressure/cpu", 1'200'000);
  EXPECT_EQ(stalls.are_processors_short(kStart + seconds(4)), true);
}

// A limit of the cgroup takes time there, wherever the cgroup is.
TEST_F(ProcessorStallsTest, AreThoseOfTheOwnCgroupToo) {
  for (const std::string own : {"", "system.slice/hangar.service/"}) {
    SCOPED_TRACE(own);
    write("proc/self/cgroup", "0::/" + own + "\n");
    waited("proc/pressure/cpu", 0);
    waited("sys/fs/cgroup/" + own + "cpu.pressure", 0);
    ProcessorStalls stalls(root_);
    (void)stalls.are_processors_short(kStart);

    waited("sys/fs/cgroup/" + own + "cpu.pressure", 1'000'000);

    EXPECT_EQ(stalls.are_processors_short(kStart + seconds(2)), true);
  }
}

}  // namespace
}  // namespace hangar::budget
