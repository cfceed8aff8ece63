#include "sandbox/system_calls.h"

#include "sandbox/in_child.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/membarrier.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hangar::sandbox {
namespace {

// A sanitized build has no sandbox to test.
#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)

// The errno of `attempt` when only computing is allowed; 255 when that could not be set up.
int error_of(const std::function<long()>& attempt) {
  return in_child([&attempt] {
    if (!limit_system_calls(computing_calls(), Threads::ThisOne)) return 255;
    return attempt() < 0 ? errno : 0;
  });
}

TEST(SystemCalls, ReachNoFileNoNetworkAndNoOtherProcess) {
  const pid_t parent = ::getpid();
  std::array<char, 8> bytes{};
  const iovec local{.iov_base = bytes.data(), .iov_len = bytes.size()};
  const std::vector<std::pair<std::string, std::function<long()>>> attempts = {
      {"open", [] { return ::open("/etc/passwd", O_RDONLY | O_CLOEXEC); }},
      {"open again for writing", [] { return ::open("/proc/self/fd/0", O_RDWR | O_CLOEXEC); }},
      {"socket", [] { return ::socket(AF_UNIX, SOCK_STREAM, 0); }},
      {"fork", [] { return static_cast<long>(::fork()); }},
      {"trace", [parent] { return ::syscall(SYS_ptrace, 16, parent, 0, 0); }},
      {"read another's memory",
       [&] { return ::process_vm_readv(parent, &local, 1, &local, 1, 0); }},
      {"take another's descriptor", [] { return ::syscall(SYS_pidfd_getfd, 0, 0, 0); }},
      {"signal", [parent] { return ::kill(parent, 0); }},
      {"signal a thread", [parent] { return ::syscall(SYS_tgkill, parent, parent, 0); }},
      {"signal a thread by its number alone", [parent] { return ::syscall(SYS_tkill, parent, 0); }},
      {"read another's limits",
       [parent] { return ::syscall(SYS_prlimit64, parent, RLIMIT_NOFILE, nullptr, nullptr); }},
      {"raise a limit",
       [] {
         rlimit much{.rlim_cur = 1, .rlim_max = 1};
         return ::setrlimit(RLIMIT_CORE, &much);
       }},
      {"be a debugger's", [] { return ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); }},
      {"have io_uring", [] { return ::syscall(SYS_io_uring_setup, 1, nullptr); }},
  };
  for (const auto& [name, attempt] : attempts) {
    SCOPED_TRACE(name);
    EXPECT_EQ(error_of(attempt), EPERM);
  }
}

TEST(SystemCalls, ThatTakeFlagsWhereNoFilterLooksAreSaidToBeUnknown) {
  EXPECT_EQ(error_of([] {
              clone_args arguments{};
              return ::syscall(SYS_clone3, &arguments, sizeof arguments);
            }),
            ENOSYS);
}

TEST(SystemCalls, OfItsOwnThreadsStay) {
  EXPECT_EQ(error_of([] {
              std::atomic<int> done = 0;
              std::thread([&done] { done = 1; }).join();
              return done == 1 ? ::syscall(SYS_tgkill, ::getpid(), ::gettid(), 0) : -1L;
            }),
            0);
}

TEST(SystemCalls, OfALoopWaitForDescriptorsAndTime) {
  EXPECT_EQ(in_child([] {
              const int timer = ::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
              const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
              std::vector<AllowedCall> calls = computing_calls();
              std::ranges::copy(waiting_calls(), std::back_inserter(calls));
              if (!limit_system_calls(calls, Threads::ThisOne)) return 255;
              epoll_event event{.events = EPOLLIN, .data = {}};
              const itimerspec soon{.it_interval = {}, .it_value = {.tv_sec = 0, .tv_nsec = 1}};
              if (::epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &event) != 0) return 2;
              if (::timerfd_settime(timer, 0, &soon, nullptr) != 0) return 3;
              return ::epoll_wait(epoll, &event, 1, -1);
            }),
            1);
}

TEST(SystemCalls, ThatMakeCodeVisibleToOtherCoresReachNoOtherProcess) {
#if defined(__aarch64__)
  EXPECT_EQ(
      error_of([] {
        const auto barrier = [](int command) { return ::syscall(SYS_membarrier, command, 0U, 0); };
        const long registered = barrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE);
        return registered < 0 ? registered : barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE);
      }),
      0);
#endif
  EXPECT_EQ(error_of([] { return ::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0U, 0); }),
            EPERM);
}

TEST(SystemCalls, OfACompiledListAreThoseOfTheProcessThatAppliesIt) {
  const Result<SystemCallFilter> compiled = SystemCallFilter::compile(computing_calls());
  ASSERT_TRUE(compiled.has_value()) << compiled.error().message();
  const pid_t parent = ::getpid();
  for (int child = 0; child < 2; ++child) {
    EXPECT_EQ(in_child([&compiled, parent] {
                if (!compiled->apply(Threads::ThisOne)) return 255;
                if (::syscall(SYS_tgkill, ::getpid(), ::gettid(), 0) != 0) return 1;
                const int own = static_cast<int>(kOwnProcess);
                for (const int other : {static_cast<int>(parent), own}) {
                  if (::syscall(SYS_tgkill, other, other, 0) == 0 || errno != EPERM) return 2;
                }
                return 0;
              }),
              0);
  }
}

TEST(SystemCalls, OfAListMayNameTheirProcessMoreThanOnce) {
  std::vector<AllowedCall> calls = computing_calls();
  calls.push_back({.number = SYS_kill, .conditions = {{.argument = 0, .value = kOwnProcess}}});
  const pid_t parent = ::getpid();
  EXPECT_EQ(in_child([&calls, parent] {
              if (!limit_system_calls(calls, Threads::ThisOne)) return 255;
              if (::kill(::getpid(), 0) != 0) return 1;
              if (::syscall(SYS_tgkill, ::getpid(), ::gettid(), 0) != 0) return 2;
              return ::kill(parent, 0) < 0 ? errno : 0;
            }),
            EPERM);
}

TEST(SystemCalls, AreAllowedWithTheArgumentsThatTheListNames) {
  const auto with_command = [](int command) {
    return in_child([command] {
      std::vector<AllowedCall> calls = computing_calls();
      calls.push_back({.number = SYS_fcntl, .conditions = {{.argument = 1, .value = F_GETFD}}});
      if (!limit_system_calls(calls, Threads::ThisOne)) return 255;
      return ::fcntl(0, command, 0) < 0 ? errno : 0;
    });
  };

  EXPECT_EQ(with_command(F_GETFD), 0);
  EXPECT_EQ(with_command(F_DUPFD), EPERM);
}

TEST(SystemCalls, AreLimitedForThreadsThatRunAlready) {
  EXPECT_EQ(in_child([] {
              std::atomic<bool> is_limited = false;
              std::atomic<int> code = 0;
              std::thread earlier([&] {
                is_limited.wait(false);
                code = ::open("/etc/passwd", O_RDONLY | O_CLOEXEC) < 0 ? errno : 0;
              });
              const bool done = limit_system_calls(computing_calls(), Threads::All).has_value();
              is_limited = true;
              is_limited.notify_all();
              earlier.join();
              return done ? code.load() : 255;
            }),
            EPERM);
}

#endif

}  // namespace
}  // namespace hangar::sandbox
