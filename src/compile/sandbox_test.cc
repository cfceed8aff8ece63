#include "compile/sandbox.h"

#include "base/result.h"
#include "sandbox/in_child.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hangar::compile {
namespace {

// The result of `attempt` in a process that has limited its system calls; 255 when it could not.
int in_sandbox(const std::function<int()>& attempt) {
  return sandbox::in_child([&attempt] {
    const bool is_limited = limit_resources() && limit_system_calls();
    return is_limited ? attempt() : 255;
  });
}

TEST(Sandbox, LeavesMemoryThreadsAndOpenDescriptors) {
  EXPECT_EQ(in_sandbox([] {
              int sum = 0;
              std::thread adder([&sum] {
                const std::vector<int> many(1'000'000, 1);
                for (const int each : many)
                  sum += each;
              });
              adder.join();
              return sum == 1'000'000 && ::write(STDOUT_FILENO, "", 0) == 0 ? 7 : 1;
            }),
            7);
}

TEST(Sandbox, EndsWhenItsProcessorTimeIsUsedUp) {
  EXPECT_EQ(sandbox::in_child([] {
              if (!limit_resources({.processor_time = std::chrono::seconds(1)})) return 255;
              for (volatile unsigned spin = 0;; spin = spin + 1) {
              }
            }),
            -SIGXCPU);
}

// The sandbox and the sanitizers exclude each other: a sanitized build has none to test.
#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)

TEST(Sandbox, ForbidsFilesNetworkAndProcesses) {
  const std::vector<std::pair<std::string, std::function<int()>>> attempts = {
      {"open", [] { return ::open("/etc/passwd", O_RDONLY | O_CLOEXEC); }},
      {"create", [] { return ::open("/tmp/x", O_WRONLY | O_CREAT | O_CLOEXEC, 0600); }},
      {"socket", [] { return ::socket(AF_UNIX, SOCK_STREAM, 0); }},
      {"fork", [] { return static_cast<int>(::fork()); }},
      {"execute",
       [] {
         char name[] = "/bin/true";
         char* const arguments[] = {name, nullptr};
         return ::execv(name, arguments);
       }},
      {"unlink", [] { return ::unlink("/tmp/x"); }},
      {"signal another", [] { return ::kill(::getppid(), 0); }},
      {"signal another's thread",
       [] { return static_cast<int>(::syscall(SYS_tgkill, ::getppid(), ::getppid(), 0)); }},
      {"change directory", [] { return ::chdir("/"); }},
  };
  for (const auto& [name, attempt] : attempts) {
    SCOPED_TRACE(name);
    EXPECT_EQ(in_sandbox([&attempt] { return attempt() < 0 ? errno : 0; }), EPERM);
  }
}

TEST(Sandbox, BoundsMemory) {
  EXPECT_EQ(in_sandbox([] {
              void* const much = std::malloc(std::size_t{16} << 30U);
              const int refused = much == nullptr ? 7 : 0;
              std::free(much);
              return refused;
            }),
            7);
}

#endif

}  // namespace
}  // namespace hangar::compile
