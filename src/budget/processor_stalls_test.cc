#include "budget/processor_stalls.h"

#include "base/time.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>

namespace hangar::budget {
namespace {

using std::chrono::seconds;

constexpr Instant kStart{std::chrono::hours(1)};

class ProcessorStallsTest : public ::testing::Test {
 protected:
  ProcessorStallsTest() {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_ / "proc/pressure");
    std::filesystem::create_directories(root_ / "sys/fs/cgroup");
  }
  ~ProcessorStallsTest() override { std::filesystem::remove_all(root_); }

  void waited(std::string_view file, int microseconds) const {
    std::ofstream(root_ / file) << "some avg10=0.00 avg60=0.00 avg300=0.00 total=" << microseconds
                                << "\n";
  }

  const std::filesystem::path root_ =
      std::filesystem::path(::testing::TempDir()) / "hangar-processor-stalls";
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

TEST_F(ProcessorStallsTest, AreThoseOfTheContainerToo) {
  ProcessorStalls stalls(root_);
  waited("proc/pressure/cpu", 0);
  waited("sys/fs/cgroup/cpu.pressure", 0);
  (void)stalls.are_processors_short(kStart);
  waited("sys/fs/cgroup/cpu.pressure", 1'000'000);
  EXPECT_EQ(stalls.are_processors_short(kStart + seconds(2)), true);
}

}  // namespace
}  // namespace hangar::budget
