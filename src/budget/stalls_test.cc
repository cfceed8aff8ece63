#include "budget/stalls.h"

#include "budget/test_machine_files.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace hangar::budget {
namespace {

using namespace std::chrono_literals;

TEST(Stall, IsReadFromTheKernelsText) {
  const std::optional<Stall> stall = parse_stall(
      "some avg10=1.53 avg60=0.87 avg300=0.21 total=2285700\n"
      "full avg10=0.00 avg60=0.00 avg300=0.00 total=132500\n");
  EXPECT_EQ(stall, (Stall{.some = 2285700us, .full = 132500us}));
}

TEST(Stall, IsNothingInOtherTexts) {
  for (const std::string_view text :
       {"", "some", "some avg10=0.00", "full avg10=0.00 avg60=0.00 avg300=0.00 total=1\n",
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=-1\n",
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=99999999999999999999\n",
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=9999999999999999999\n",
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=1x\n"}) {
    EXPECT_EQ(parse_stall(text), std::nullopt) << text;
  }
}

class StallFilesTest : public MachineFilesTest {
 protected:
  void stalled(std::string_view file, int microseconds) const {
    write(file, fmt::format("some avg10=0.00 avg60=0.00 avg300=0.00 total={}\n", microseconds));
  }
};

TEST_F(StallFilesTest, AreThoseOfTheOwnCgroup) {
  struct Case {
    std::string name;
    std::string cgroups;
    std::string directory;  // Its own, below sys/fs/cgroup.
  };
  for (const Case& one :
       {Case{"a service of the machine", "0::/system.slice/hangar.service\n",
             "system.slice/hangar.service/"},
        Case{"a container that sees no other cgroup", "0::/\n", ""},
        Case{"a container that cannot see its own path", "0::/kubepods.slice/pod1\n", ""},
        Case{"version 2 beside version 1", "4:memory,cpu:/pod2\n0::/pod2\n", "unified/pod2/"}}) {
    SCOPED_TRACE(one.name);
    std::filesystem::remove_all(root_ / "sys");
    write("proc/self/cgroup", one.cgroups);
    write("sys/fs/cgroup/memory/pod2/memory.stat", "\n");
    for (const std::string resource : {"memory", "cpu"}) {
      stalled("proc/pressure/" + resource, 1);
      stalled("sys/fs/cgroup/" + resource + ".pressure", 2);
      stalled("sys/fs/cgroup/" + one.directory + resource + ".pressure", 3);

      const StallFiles files(resource, root_);

      EXPECT_EQ(files.of_machine(), Stall{.some = 1us});
      EXPECT_EQ(files.of_cgroup(), Stall{.some = 3us});
    }
  }
}

TEST_F(StallFilesTest, AreNoneOfACgroupOfVersion1) {
  write("proc/self/cgroup", "4:memory,cpu:/pod2\n");
  stalled("proc/pressure/cpu", 1);
  stalled("sys/fs/cgroup/cpu.pressure", 2);

  const StallFiles files("cpu", root_);

  EXPECT_EQ(files.of_machine(), Stall{.some = 1us});
  EXPECT_EQ(files.of_cgroup(), std::nullopt);
}

TEST_F(StallFilesTest, AreNoneWhereTheKernelTellsNothing) {
  EXPECT_EQ(StallFiles("cpu", root_).of_machine(), std::nullopt);
  EXPECT_EQ(StallFiles("cpu", root_).of_cgroup(), std::nullopt);
  write("proc/pressure/cpu", "");
  EXPECT_EQ(StallFiles("cpu", root_).of_machine(), std::nullopt);
}

}  // namespace
}  // namespace hangar::budget
