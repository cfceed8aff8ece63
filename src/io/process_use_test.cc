#include "io/process_use.h"

#include "base/time.h"
#include "io/cpu_time.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hangar::io {

namespace {

void compute_for(Duration time) {
  const Duration began = thread_cpu_time();
  while (thread_cpu_time() - began < time) {
  }
}

void touch(std::size_t bytes) {
  std::vector<std::uint8_t> memory(bytes);
  for (std::size_t at = 0; at < bytes; at += 1024)
    const_cast<volatile std::uint8_t&>(memory[at]) = 1;
}

// A child that works, reports on `told` that it has, and waits until `go_on` is closed.
struct Child {
  pid_t pid = -1;
  int told = -1;
  int go_on = -1;
};

Child start_child(Duration cpu, std::size_t bytes) {
  int told[2] = {};
  int go_on[2] = {};
  EXPECT_EQ(::pipe(told), 0);
  EXPECT_EQ(::pipe(go_on), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::close(go_on[1]);
    std::vector<std::uint8_t> memory(bytes);
    for (std::size_t at = 0; at < bytes; at += 1024)
      const_cast<volatile std::uint8_t&>(memory[at]) = 1;
    compute_for(cpu);
    char one = 1;
    (void)!::write(told[1], &one, 1);
    (void)!::read(go_on[0], &one, 1);
    ::_exit(0);
  }
  ::close(told[1]);
  ::close(go_on[0]);
  char one = 0;
  EXPECT_EQ(::read(told[0], &one, 1), 1);
  return {.pid = pid, .told = told[0], .go_on = go_on[1]};
}

void end(const Child& child) {
  ::close(child.go_on);
  ::close(child.told);
  EXPECT_EQ(::waitpid(child.pid, nullptr, 0), child.pid);
}

constexpr std::chrono::milliseconds kWork{200};
// The kernel counts a child's time in ticks of 10 ms.
constexpr std::chrono::milliseconds kTicks{20};

}  // namespace

TEST(ProcessUse, HasTheTimeOfThisProcess) {
  const ProcessUse before = process_use();
  compute_for(kWork);
  touch(1024);

  EXPECT_GE(process_use().cpu - before.cpu, kWork - kTicks);
}

TEST(ProcessUse, HasTheTimeAndMemoryOfAChildThatRuns) {
  constexpr std::size_t kBytes = std::size_t{64} << 20U;
  const ProcessUse before = process_use();
  const Child child = start_child(kWork, kBytes);

  const ProcessUse use = process_use();

  EXPECT_GE(use.cpu - before.cpu, kWork - kTicks);
  EXPECT_GE(use.resident_bytes, before.resident_bytes + kBytes / 2);
  end(child);
}

TEST(ProcessUse, KeepsTheTimeOfAChildThatHasEnded) {
  const ProcessUse before = process_use();
  end(start_child(kWork, 1024));

  EXPECT_GE(process_use().cpu - before.cpu, kWork - kTicks);
}

}  // namespace hangar::io
