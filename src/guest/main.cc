// hangar-guest: runs guests where there is nothing to find. The host starts it with an empty
// environment and a socket as descriptor 0; src/guest/README.md says what becomes of it.
#include "base/limits.h"
#include "base/result.h"
#include "guest/guest_process.h"
#include "guest/zygote.h"
#include "guest_protocol/zygote_messages.h"
#include "sandbox/process.h"

#include <malloc.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <limits>

int main() {
  // As in the host: one heap, and large buffers go back at once.
  ::mallopt(M_MMAP_THRESHOLD, hangar::limits::kMiB);
  ::mallopt(M_TRIM_THRESHOLD, 2 * hangar::limits::kMiB);
  ::mallopt(M_ARENA_MAX, 1);
  // The host closes its descriptors on exec; this one sees to it. Linux 5.9.
  ::syscall(SYS_close_range, STDERR_FILENO + 1, std::numeric_limits<unsigned>::max(), 0);
  // The host's end is this one's: by the kernel, or by the socket if it came before this line.
  if (!hangar::sandbox::die_with(::getppid())) return hangar::guest_protocol::kExitWithoutWalls;
  hangar::guest::run_zygote(
      hangar::guest_protocol::kSocket,
      [](const hangar::guest_protocol::ForkProcess& order, int socket, pid_t zygote) {
        return hangar::guest::run_guest_process(order, socket, zygote);
      });
  return 0;
}
