#include "budget/container_memory.h"

#include "base/limits.h"
#include "budget/test_machine_files.h"

#include <gtest/gtest.h>

#include <optional>
#include <string_view>

namespace hangar::budget {
namespace {

using limits::kMiB;

// Files copied from containers of each kind.
using ContainerMemoryTest = MachineFilesTest;

TEST_F(ContainerMemoryTest, APodWithAnOwnCgroupNamespaceSeesItsLimitAtTheRoot) {
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/memory.max", "1073741824\n");

  EXPECT_EQ(container_memory_max(root_), 1024 * kMiB);
}

TEST_F(ContainerMemoryTest, OfNestedCgroupsTheLeastLimitCounts) {
  write("proc/self/cgroup", "0::/kubepods.slice/pod1.slice/container.scope\n");
  write("sys/fs/cgroup/kubepods.slice/memory.max", "8589934592\n");
  write("sys/fs/cgroup/kubepods.slice/pod1.slice/memory.max", "268435456\n");
  write("sys/fs/cgroup/kubepods.slice/pod1.slice/container.scope/memory.max", "max\n");

  EXPECT_EQ(container_memory_max(root_), 256 * kMiB);
}

TEST_F(ContainerMemoryTest, Version1NamesItsController) {
  write("proc/self/cgroup",
        "12:cpu,cpuacct:/kubepods/pod1\n4:memory:/kubepods/pod1\n1:name=systemd:/kubepods/pod1\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("sys/fs/cgroup/memory/kubepods/pod1/memory.limit_in_bytes", "536870912\n");

  EXPECT_EQ(container_memory_max(root_), 512 * kMiB);
}

TEST_F(ContainerMemoryTest, Version1InAContainerHasThePathOfTheMachine) {
  write("proc/self/cgroup", "4:memory:/docker/0123\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "104857600\n");

  EXPECT_EQ(container_memory_max(root_), 100 * kMiB);
}

TEST_F(ContainerMemoryTest, WithoutALimitThereIsNone) {
  EXPECT_EQ(container_memory_max(root_), std::nullopt);
  write("proc/self/cgroup", "0::/../other\nnonsense\n::\n");
  write("sys/fs/cgroup/memory.max", "max\n");
  write("sys/fs/other/memory.max", "1\n");
  EXPECT_EQ(container_memory_max(root_), std::nullopt);
  write("proc/self/cgroup", "4:memory:/\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(container_memory_max(root_), std::nullopt);
}

TEST_F(ContainerMemoryTest, GuestsHaveWhatTheHostLeaves) {
  write("proc/meminfo", "MemTotal:        8388608 kB\nMemFree:          100 kB\n");
  EXPECT_EQ(machine_memory(root_), 8192 * kMiB);
  EXPECT_EQ(guest_memory_max(root_), (8192 - 1024) * kMiB);

  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/memory.max", "1073741824\n");
  EXPECT_EQ(guest_memory_max(root_), 768 * kMiB);
  EXPECT_EQ(host_memory_max(root_), 256 * kMiB);

  write("sys/fs/cgroup/memory.max", "134217728\n");
  EXPECT_EQ(guest_memory_max(root_), 64 * kMiB);

  write("sys/fs/cgroup/memory.max", "1048576\n");
  EXPECT_EQ(guest_memory_max(root_), 32 * kMiB);
}

}  // namespace
}  // namespace hangar::budget
