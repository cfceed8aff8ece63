#include "sandbox/system_calls.h"

#include "base/result.h"
#include "sandbox/sandboxed.h"

#include <fmt/format.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <system_error>
#include <vector>

namespace hangar::sandbox {

namespace {

struct Release {
  void operator()(void* filter) const { ::seccomp_release(filter); }
};
using Filter = std::unique_ptr<void, Release>;

// libseccomp returns negative errno values.
Result<> check(int answer, std::string_view doing) {
  if (answer == 0) return {};
  return fail(ErrorKind::Unavailable, fmt::format("limit system calls: {}: {}", doing,
                                                  std::generic_category().message(-answer)));
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
  calls.push_back(
      {.number = SYS_tgkill,
       .conditions = {{.argument = 0, .value = static_cast<std::uint64_t>(::getpid())}}});
  return calls;
}

bool has_system_call_filters() {
  constexpr std::uint32_t kErrorAction = SECCOMP_RET_ERRNO;
  return kIsSandboxed && ::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0U, &kErrorAction) == 0;
}

Result<> limit_system_calls(std::span<const AllowedCall> allowed, Threads threads) {
  if (!kIsSandboxed) return {};
  const Filter filter(::seccomp_init(SCMP_ACT_ERRNO(EPERM)));
  if (filter == nullptr) return check(-ENOMEM, "begin");
  HANGAR_TRY(check(::seccomp_attr_set(filter.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS),
                   "other ABIs"));
  if (threads == Threads::All) {
    HANGAR_TRY(check(::seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_TSYNC, 1), "all threads"));
  }
  for (const AllowedCall& call : allowed)
    HANGAR_TRY(allow(filter.get(), call));
  HANGAR_TRY(check(::seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0),
                   "answer clone3"));
  return check(::seccomp_load(filter.get()), "load");
}

}  // namespace hangar::sandbox
