#include "sandbox/system_calls.h"

#include "base/result.h"
#include "sandbox/sandboxed.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/filter.h>
#include <linux/membarrier.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <span>
#include <string_view>
#include <system_error>
#include <vector>

namespace hangar::sandbox {

namespace {

// What the architectures differ in.
#if defined(__x86_64__)
constexpr std::array kWaits = {SYS_epoll_wait, SYS_epoll_pwait};
// All cores see code that is mapped.
constexpr std::array<std::uint64_t, 0> kBarriers{};
#elif defined(__aarch64__)
constexpr std::array kWaits = {SYS_epoll_pwait};
// wasmtime makes all cores of the process see code that it has mapped. To do so, it registers the
// process.
constexpr std::array<std::uint64_t, 2> kBarriers = {
    MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE,
    MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE,
};
#else
#error "the system calls that programs make have not been tried on this architecture"
#endif

struct Release {
  void operator()(void* filter) const { ::seccomp_release(filter); }
};
using Filter = std::unique_ptr<void, Release>;

std::unexpected<Error> failed(std::string_view doing, int code) {
  return fail(ErrorKind::Unavailable, fmt::format("limit system calls: {}: {}", doing,
                                                  std::generic_category().message(code)));
}

// libseccomp returns negative errno values.
Result<> check(int answer, std::string_view doing) {
  if (answer == 0) return {};
  return failed(doing, -answer);
}

Result<> allow(void* filter, const AllowedCall& call) {
  std::vector<scmp_arg_cmp> comparisons;
  for (const Condition& condition : call.conditions) {
    comparisons.push_back({.arg = condition.argument,
                           .op = SCMP_CMP_MASKED_EQ,
                           .datum_a = condition.mask,
                           .datum_b = condition.value});
  }
  return check(
      ::seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, call.number,
                               static_cast<unsigned>(comparisons.size()), comparisons.data()),
      fmt::format("allow call {}", call.number));
}

// libseccomp writes a filter to a descriptor only. It fits a pipe, which holds 4 KiB at least.
Result<std::vector<SystemCallFilter::Instruction>> exported(void* filter) {
  constexpr std::size_t kBytesMax = 4096;
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    return failed("make a pipe", errno);
  }
  std::vector<SystemCallFilter::Instruction> instructions(kBytesMax /
                                                          sizeof(SystemCallFilter::Instruction));
  const int answer = ::seccomp_export_bpf(filter, ends[1]);
  const ssize_t size = answer == 0 ? ::read(ends[0], instructions.data(), kBytesMax) : 0;
  for (const int end : ends)
    ::close(end);
  HANGAR_TRY(check(answer, "export"));
  const auto bytes = static_cast<std::size_t>(std::max<ssize_t>(size, 0));
  if (bytes == 0 || bytes == kBytesMax || bytes % sizeof(SystemCallFilter::Instruction) != 0) {
    return failed("export", EMSGSIZE);
  }
  instructions.resize(bytes / sizeof(SystemCallFilter::Instruction));
  return instructions;
}

}  // namespace

std::vector<AllowedCall> computing_calls() {
  std::vector<AllowedCall> calls;
  for (const int number :
       {// Memory.
        SYS_brk, SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise,
        // Threads of this process.
        SYS_futex, SYS_set_robust_list, SYS_rseq, SYS_sched_yield, SYS_sched_getaffinity,
        SYS_gettid, SYS_getpid, SYS_exit, SYS_exit_group,
        // Signals: stack overflow guards of threads, traps of guests.
        SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_sigaltstack,
        // Time and randomness.
        SYS_clock_gettime, SYS_clock_nanosleep, SYS_nanosleep, SYS_getrandom, SYS_restart_syscall,
        // Descriptors.
        SYS_read, SYS_write, SYS_writev, SYS_fstat, SYS_lseek, SYS_close, SYS_ftruncate,
        SYS_getrusage}) {
    calls.push_back({.number = number});
  }
  for (const std::uint64_t command : kBarriers)
    calls.push_back({.number = SYS_membarrier, .conditions = {{.argument = 0, .value = command}}});
  // Threads may be started, processes may not.
  calls.push_back({.number = SYS_clone,
                   .conditions = {{.argument = 0, .mask = CLONE_THREAD, .value = CLONE_THREAD}}});
  // Of prctl, only naming a thread.
  calls.push_back({.number = SYS_prctl, .conditions = {{.argument = 0, .value = PR_SET_NAME}}});
  // Reading its own limits, for the size of stacks; setting them, or reading those of others,
  // is refused.
  calls.push_back({.number = SYS_prlimit64,
                   .conditions = {{.argument = 0, .value = 0}, {.argument = 2, .value = 0}}});
  // For abort(). Without the condition it would reach every process of the same user.
  calls.push_back({.number = SYS_tgkill, .conditions = {{.argument = 0, .value = kOwnProcess}}});
  return calls;
}

std::vector<AllowedCall> waiting_calls() {
  std::vector<AllowedCall> calls{{.number = SYS_epoll_ctl}, {.number = SYS_timerfd_settime}};
  for (const int number : kWaits)
    calls.push_back({.number = number});
  return calls;
}

bool has_system_call_filters() {
  constexpr std::uint32_t kErrorAction = SECCOMP_RET_ERRNO;
  return kIsSandboxed && ::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0U, &kErrorAction) == 0;
}

Result<SystemCallFilter> SystemCallFilter::compile(std::span<const AllowedCall> allowed) {
  SystemCallFilter compiled;
  if (!kIsSandboxed) return compiled;
  const Filter filter(::seccomp_init(SCMP_ACT_ERRNO(EPERM)));
  if (filter == nullptr) return failed("begin", ENOMEM);
  HANGAR_TRY(check(::seccomp_attr_set(filter.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS),
                   "other ABIs"));
  for (const AllowedCall& call : allowed)
    HANGAR_TRY(allow(filter.get(), call));
  HANGAR_TRY(check(::seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0),
                   "answer clone3"));
  compiled.instructions_ = HANGAR_TRY(exported(filter.get()));
  // libseccomp may compile the condition to other instructions some day.
  const bool names_itself = std::ranges::any_of(allowed, [](const AllowedCall& call) {
    return std::ranges::find(call.conditions, kOwnProcess, &Condition::value) !=
           call.conditions.end();
  });
  const bool has_place = std::ranges::find(compiled.instructions_, kOwnProcess,
                                           &Instruction::value) != compiled.instructions_.end();
  if (names_itself != has_place) return failed("find the own process", EINVAL);
  return compiled;
}

Result<> SystemCallFilter::apply(Threads threads) const {
  if (!kIsSandboxed) return {};
  static_assert(sizeof(Instruction) == sizeof(sock_filter));
  std::vector<Instruction> instructions = instructions_;
  for (Instruction& instruction : instructions) {
    if (instruction.value == kOwnProcess) {
      instruction.value = static_cast<std::uint32_t>(::getpid());
    }
  }
  const sock_fprog program{.len = static_cast<unsigned short>(instructions.size()),
                           .filter = reinterpret_cast<sock_filter*>(instructions.data())};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return failed("no new privileges", errno);
  const unsigned flags = threads == Threads::All ? SECCOMP_FILTER_FLAG_TSYNC : 0U;
  const long answer = ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
  // A positive answer is the id of a thread that has another filter.
  if (answer != 0) return failed("load", answer > 0 ? EBUSY : errno);
  return {};
}

Result<> limit_system_calls(std::span<const AllowedCall> allowed, Threads threads) {
  return HANGAR_TRY(SystemCallFilter::compile(allowed)).apply(threads);
}

}  // namespace hangar::sandbox
