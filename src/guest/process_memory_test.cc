#include "guest/process_memory.h"

#include "base/limits.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace hangar::guest {
namespace {

TEST(ProcessMemory, IsWhatIsNoFiles) {
  EXPECT_EQ(memory_in("Name:\tVmSwap:\nVmRSS:\t  900 kB\nRssAnon:\t     100 kB\n"
                      "RssFile:\t   700 kB\nRssShmem:\t 20 kB\nVmPTE:\t 3 kB\nVmSwap:\t4 kB\n"),
            127 * limits::kKiB);
}

TEST(ProcessMemory, IsNothingWhereNothingIsSaid) {
  EXPECT_EQ(memory_in(""), 0U);
  EXPECT_EQ(memory_in("RssAnon:"), 0U);
  EXPECT_EQ(memory_in("RssAnon:\tmuch kB\nVmPTE"), 0U);
  EXPECT_EQ(memory_of(-1), 0U);
  EXPECT_LT(open_status(-1), 0);
}

TEST(ProcessMemory, GrowsWithWhatAProcessWrites) {
  constexpr std::size_t kBytes = 64 * limits::kMiB;
  const int status = open_status(::getpid());
  ASSERT_GE(status, 0);
  const std::uint64_t before = memory_of(status);
  void* const memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);

  const std::uint64_t after = memory_of(status);
  ::munmap(memory, kBytes);
  ::close(status);

  EXPECT_GT(before, 0U);
  EXPECT_GE(after, before + kBytes - limits::kMiB);
}

TEST(ProcessClock, StandsStillUnlessTheProcessRuns) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    // Runs at each byte, and ends with the pipe.
    char byte = 0;
    while (::read(ends[0], &byte, 1) == 1 && byte != 'x') {
    }
    ::_exit(0);
  }
  ProcessClock clock(child);
  const auto wait_until_still = [&clock] {
    int still = 0;
    while (still < 3) {
      still = clock.stood_still() ? still + 1 : 0;
      ::usleep(1000);
    }
  };
  wait_until_still();

  EXPECT_EQ(::write(ends[1], "y", 1), 1);
  while (clock.stood_still())
    ::usleep(1000);
  wait_until_still();

  EXPECT_EQ(::write(ends[1], "x", 1), 1);
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(clock.stood_still()) << "it is gone";
  EXPECT_FALSE(ProcessClock().stood_still());
  for (const int end : ends)
    ::close(end);
}

}  // namespace
}  // namespace hangar::guest
