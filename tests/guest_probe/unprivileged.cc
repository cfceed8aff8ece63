// hangar-guest as the chart's pod runs it: as a user without any right, whoever starts it. For
// tests of what the kernel refuses to such a user: after SIGUSR1 it may start no process, after
// SIGHUP the kernel has no memory for one (cmake/Guest.cmake wraps fork), after SIGUSR2 both are as
// before.
#include "guest/guest_process.h"
#include "guest/prepared.h"
#include "guest/zygote.h"
#include "guest_protocol/zygote_messages.h"
#include "sandbox/process.h"

#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace {

constexpr uid_t kUser = 65532;

bool become_unprivileged() {
  if (::geteuid() != 0) return true;
  return ::setgroups(0, nullptr) == 0 && ::setgid(kUser) == 0 && ::setuid(kUser) == 0 &&
         // A change of the user makes the process's own /proc inaccessible to it.
         ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0;
}

void limit_processes(int signal) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NPROC, &limit);
  limit.rlim_cur = signal == SIGUSR1 ? 0 : limit.rlim_max;
  ::setrlimit(RLIMIT_NPROC, &limit);
}

// No limit of a process makes its forks fail with ENOMEM, only a machine without memory does.
volatile std::sig_atomic_t is_without_memory = 0;

void set_memory(int signal) {
  is_without_memory = signal == SIGHUP ? 1 : 0;
}

void set_both(int signal) {
  limit_processes(signal);
  set_memory(signal);
}

}  // namespace

extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier): the linker's names.
pid_t __real_fork();
pid_t __wrap_fork() {
  if (is_without_memory == 0) return __real_fork();
  errno = ENOMEM;
  return -1;
}
// NOLINTEND(bugprone-reserved-identifier)
}

int main() {
  if (!become_unprivileged() || !hangar::sandbox::die_with(::getppid())) return 1;
  ::signal(SIGUSR1, limit_processes);
  ::signal(SIGHUP, set_memory);
  ::signal(SIGUSR2, set_both);
  const hangar::guest::Prepared prepared;
  hangar::guest::run_zygote(
      hangar::guest_protocol::kSocket,
      [&prepared](const hangar::guest_protocol::ForkProcess& order, int socket, pid_t zygote) {
        return hangar::guest::run_guest_process(prepared, order, socket, zygote);
      });
  return 0;
}
