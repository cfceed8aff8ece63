#include "guest/walls.h"

#include "base/result.h"
#include "guest_protocol/messages.h"
#include "sandbox/landlock.h"
#include "sandbox/process.h"
#include "sandbox/system_calls.h"
#include "wasm/engine.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <tuple>
#include <vector>

namespace hangar::guest {

namespace {

// A module needs up to three descriptors: for its native code one here and one in the engine, and
// one for the image if its guests can sleep. Machines and guests that are awake keep their modules
// even after DropModule, so more than a thousand modules may be in use at a time. All descriptors
// come from the host.
constexpr std::uint64_t kDescriptorsMax = 4096;
static_assert(3 * (guest_protocol::kModulesMax + guest_protocol::kMachinesMax) < kDescriptorsMax);

// The ioctl of wasm/snapshot/written_pages.cc: _IOWR('f', 16, 96 bytes); older headers lack it.
constexpr std::uint64_t kPagemapScan = 0xc0606610;

// A process without privileges cannot raise its limit.
std::uint64_t descriptors_max() {
  rlimit present{};
  if (::getrlimit(RLIMIT_NOFILE, &present) != 0) return kDescriptorsMax;
  return std::min<std::uint64_t>(present.rlim_max, kDescriptorsMax);
}

}  // namespace

Result<wasm::OwnProcFiles> put_up_first_walls(pid_t zygote) {
  HANGAR_TRY(sandbox::die_with(zygote));
  sandbox::end_first_when_memory_is_short();
  // Opened first: give_up_privileges() hides the memory, and root then owns this process's files
  // in /proc.
  wasm::OwnProcFiles files{.pagemap = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC),
                           .statm = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC)};
  HANGAR_TRY(sandbox::give_up_privileges());
  HANGAR_TRY(sandbox::limit(RLIMIT_NOFILE, descriptors_max()));
  HANGAR_TRY(sandbox::limit(RLIMIT_FSIZE, 0));
  HANGAR_TRY(sandbox::limit(RLIMIT_MEMLOCK, 0));
  HANGAR_TRY(sandbox::limit(RLIMIT_MSGQUEUE, 0));
  std::ignore = HANGAR_TRY(sandbox::deny_files_and_others());
  return files;
}

Result<sandbox::SystemCallFilter> compile_last_wall() {
  std::vector<sandbox::AllowedCall> calls = sandbox::computing_calls();
  std::erase_if(calls, [](const sandbox::AllowedCall& call) {
    // No more threads: all exist already, and a further one would count against the host's limit
    // of processes.
    return call.number == SYS_clone || call.number == SYS_mmap;
  });
  // No process shares memory with this one.
  calls.push_back(
      {.number = SYS_mmap, .conditions = {{.argument = 3, .mask = MAP_SHARED, .value = 0}}});
  std::ranges::move(sandbox::waiting_calls(), std::back_inserter(calls));
  // To the socket's other end. By sendmsg() a process could put descriptors in flight, of which the
  // kernel counts few for all processes of a user: the host could hand over none then.
  calls.push_back({.number = SYS_sendto, .conditions = {{.argument = 4, .value = 0}}});
  for (const int number : {// Messages.
                           SYS_readv, SYS_recvmsg,
                           // Own pages, and clocks of guests.
                           SYS_pread64, SYS_clock_getres}) {
    calls.push_back({.number = number});
  }
  for (const std::uint64_t command : {std::uint64_t{FIONBIO}, kPagemapScan})
    calls.push_back({.number = SYS_ioctl, .conditions = {{.argument = 1, .value = command}}});
  // The engine duplicates the descriptor of the native code instead of opening the file again.
  calls.push_back({.number = SYS_fcntl, .conditions = {{.argument = 1, .value = F_DUPFD_CLOEXEC}}});
  return sandbox::SystemCallFilter::compile(calls);
}

}  // namespace hangar::guest
