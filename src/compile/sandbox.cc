#include "compile/sandbox.h"

#include "base/result.h"
#include "wasm/limits.h"

#include <fmt/format.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <string_view>
#include <system_error>
#include <vector>

namespace hangar::compile {

namespace {

// The sanitizers' runtimes reserve terabytes and read /proc: they and the sandbox exclude each
// other.
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kIsSandboxed = false;
#else
constexpr bool kIsSandboxed = true;
#endif

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
#error "add this architecture's audit number"
#endif

// Memory, threads, time, and descriptors that are open already.
constexpr std::array kAllowed = {
    // Memory.
    SYS_brk, SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise,
    // Threads of this process; clone is looked at more closely below.
    SYS_futex, SYS_set_robust_list, SYS_rseq, SYS_sched_yield, SYS_sched_getaffinity, SYS_gettid,
    SYS_getpid, SYS_exit, SYS_exit_group,
    // Signals: stack overflow guards of threads, abort().
    SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_sigaltstack, SYS_tgkill,
    // Time and randomness.
    SYS_clock_gettime, SYS_clock_nanosleep, SYS_nanosleep, SYS_getrandom, SYS_restart_syscall,
    // Descriptors.
    SYS_read, SYS_write, SYS_writev, SYS_fstat, SYS_lseek, SYS_close, SYS_ftruncate, SYS_getrusage};

std::unexpected<Error> fail_errno(std::string_view doing) {
  return fail(ErrorKind::Unavailable,
              fmt::format("{}: {}", doing, std::generic_category().message(errno)));
}

Result<> set_limit(decltype(RLIMIT_AS) which, std::uint64_t soft, std::uint64_t hard,
                   std::string_view name) {
  const rlimit limit{.rlim_cur = soft, .rlim_max = hard};
  if (::setrlimit(which, &limit) != 0) return fail_errno(name);
  return {};
}
Result<> set_limit(decltype(RLIMIT_AS) which, std::uint64_t value, std::string_view name) {
  return set_limit(which, value, value, name);
}

constexpr sock_filter load(std::size_t offset) {
  return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
}
constexpr sock_filter answer(std::uint32_t action) {
  return BPF_STMT(BPF_RET | BPF_K, action);
}
// Skips the next instruction unless equal.
constexpr sock_filter unless_equal_skip(std::uint32_t value) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
}
constexpr std::uint32_t error(int code) {
  return SECCOMP_RET_ERRNO | (static_cast<std::uint32_t>(code) & SECCOMP_RET_DATA);
}

std::vector<sock_filter> make_filter() {
  std::vector<sock_filter> filter = {
      load(offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0),
      answer(SECCOMP_RET_KILL_PROCESS),
      load(offsetof(seccomp_data, nr)),
  };
#if defined(__x86_64__)
  // Calls of the x32 ABI carry this bit and would pass for others.
  filter.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1));
  filter.push_back(answer(SECCOMP_RET_KILL_PROCESS));
#endif
  for (const int call : kAllowed) {
    filter.push_back(unless_equal_skip(static_cast<std::uint32_t>(call)));
    filter.push_back(answer(SECCOMP_RET_ALLOW));
  }
  // clone3 takes its flags in memory, where a filter cannot look; glibc then falls back to clone.
  filter.push_back(unless_equal_skip(SYS_clone3));
  filter.push_back(answer(error(ENOSYS)));
  // Reading limits, for the size of stacks: no new ones (the third argument).
  filter.insert(filter.end(),
                {BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prlimit64, 0, 6),
                 load(offsetof(seccomp_data, args) + 2 * sizeof(std::uint64_t)),
                 BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 3),
                 load(offsetof(seccomp_data, args) + 2 * sizeof(std::uint64_t) + 4),
                 unless_equal_skip(0), answer(SECCOMP_RET_ALLOW), answer(error(EPERM))});
  // Naming threads, nothing else that prctl does.
  filter.insert(filter.end(), {BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 4),
                               load(offsetof(seccomp_data, args)), unless_equal_skip(PR_SET_NAME),
                               answer(SECCOMP_RET_ALLOW), answer(error(EPERM))});
  // New threads, not new processes.
  filter.insert(
      filter.end(),
      {BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3), load(offsetof(seccomp_data, args)),
       BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1), answer(SECCOMP_RET_ALLOW)});
  filter.push_back(answer(error(EPERM)));
  return filter;
}

}  // namespace

Result<> limit_resources(std::chrono::seconds processor_time) {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return fail_errno("no new privileges");
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return fail_errno("no core dumps");
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) return fail_errno("die with the parent");
  HANGAR_TRY(set_limit(RLIMIT_CORE, 0, "limit core dumps"));
  HANGAR_TRY(set_limit(RLIMIT_FSIZE, limits::kCompiledBytesMax, "limit output"));
  HANGAR_TRY(set_limit(RLIMIT_NOFILE, 16, "limit descriptors"));
  const auto seconds = static_cast<std::uint64_t>(processor_time.count());
  // At the second limit the kernel kills, which looks as if somebody else had.
  HANGAR_TRY(set_limit(RLIMIT_CPU, seconds, seconds + 1, "limit processor time"));
  if (!kIsSandboxed) return {};
  return set_limit(RLIMIT_AS, limits::kCompileMemoryBytesMax, "limit memory");
}

Result<> limit_system_calls() {
  if (!kIsSandboxed) return {};
  std::vector<sock_filter> filter = make_filter();
  const sock_fprog program{.len = static_cast<unsigned short>(filter.size()),
                           .filter = filter.data()};
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0) {
    return fail_errno("limit system calls");
  }
  return {};
}

}  // namespace hangar::compile
