// The one door to the clocks of this process: all other code gets the time from Loop::now(),
// Loop::wall_now() or thread_cpu_time(), and these come here. A simulation on the calling thread
// (virtual_time.h) answers in place of the kernel.
#pragma once

#include "base/time.h"

namespace hangar::io {

// Since the machine's start, including the time for which it was suspended.
[[nodiscard]] Instant read_boot_clock();
[[nodiscard]] WallTime read_wall_clock();
// What the calling thread has used of a processor.
[[nodiscard]] Duration read_thread_clock();

}  // namespace hangar::io
