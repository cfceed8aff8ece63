// hangar-guest: runs guests in processes that hold nothing worth stealing. The host starts it with
// an empty environment and a socket as descriptor 0; src/guest/README.md describes its life.
#include "base/limits.h"
#include "base/result.h"
#include "guest/guest_process.h"
#include "guest/prepared.h"
#include "guest/program_pages.h"
#include "guest/zygote.h"
#include "guest_protocol/zygote_messages.h"
#include "sandbox/process.h"

#include <malloc.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <limits>

int main() {
  // NOLINTBEGIN(concurrency-mt-unsafe): before any thread starts.
  // As in the host: one heap, and large buffers return to the system at once.
  ::mallopt(M_MMAP_THRESHOLD, hangar::limits::kMiB);
  ::mallopt(M_TRIM_THRESHOLD, 2 * hangar::limits::kMiB);
  ::mallopt(M_ARENA_MAX, 1);
  // NOLINTEND(concurrency-mt-unsafe)
  // The host's descriptors close on exec; this closes any that do not. Linux 5.9.
  ::syscall(SYS_close_range, STDERR_FILENO + 1, std::numeric_limits<unsigned>::max(), 0);
  // This process exits with the host: the kernel kills it or, if the host exited before this line,
  // its socket is closed.
  if (!hangar::sandbox::die_with(::getppid())) return hangar::guest_protocol::kExitWithoutWalls;
  const hangar::guest::Prepared prepared;
  // From here on it waits most of the time.
  ::malloc_trim(0);
  hangar::guest::unmap_program();
  hangar::guest::run_zygote(
      hangar::guest_protocol::kSocket,
      [&prepared](const hangar::guest_protocol::ForkProcess& order, int socket, pid_t zygote) {
        return hangar::guest::run_guest_process(prepared, order, socket, zygote);
      });
  return 0;
}
