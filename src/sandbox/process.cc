#include "sandbox/process.h"

#include "base/result.h"
#include "sandbox/sandboxed.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <expected>
#include <string_view>
#include <system_error>
#include <tuple>

namespace hangar::sandbox {

namespace {

std::unexpected<Error> fail_errno(std::string_view doing) {
  return fail(ErrorKind::Unavailable,
              fmt::format("{}: {}", doing, std::generic_category().message(errno)));
}

}  // namespace

Result<> give_up_privileges() {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return fail_errno("no new privileges");
  HANGAR_TRY(hide_memory());
  return limit(RLIMIT_CORE, 0);
}

Result<> hide_memory() {
  if (!kIsSandboxed) return {};
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return fail_errno("hide its memory");
  return {};
}

void end_first_when_memory_is_short() {
  constexpr std::string_view kFirst = "1000";
  const int file = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  std::ignore = ::write(file, kFirst.data(), kFirst.size());
  ::close(file);
}

Result<> die_with(pid_t parent) {
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) return fail_errno("die with the parent");
  // The kernel sends no signal for a parent that exited before the call.
  if (::getppid() != parent) return fail(ErrorKind::Unavailable, "the parent has exited");
  return {};
}

Result<> limit(__rlimit_resource which, std::uint64_t value) {
  return limit(which, value, value);
}

Result<> limit(__rlimit_resource which, std::uint64_t soft, std::uint64_t hard) {
  const rlimit limit{.rlim_cur = soft, .rlim_max = hard};
  if (::setrlimit(which, &limit) != 0) {
    return fail_errno(fmt::format("limit resource {}", static_cast<int>(which)));
  }
  return {};
}

}  // namespace hangar::sandbox
