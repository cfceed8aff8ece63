// Restrictions that a process puts on itself.
#pragma once

#include "base/result.h"

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>

namespace hangar::sandbox {

// Programs that the process starts cannot gain more rights than it has, and other processes cannot
// read its memory: no core dump, no debugger, and only root reads its files in /proc.
[[nodiscard]] Result<> give_up_privileges();
// Only the second half: for a process that starts others. Does nothing in a sanitized build: the
// leak sanitizer works as a debugger.
[[nodiscard]] Result<> hide_memory();

// When memory is short, the kernel kills this process before others, such as the host. Failure is
// ignored, because the process has other bounds.
void end_first_when_memory_is_short();

// The kernel kills this process when the thread that started it exits. Unavailable when `parent`
// has already exited.
[[nodiscard]] Result<> die_with(pid_t parent);

// Sets the soft and the hard limit, so that neither this process nor an attacker in it can raise
// it again.
[[nodiscard]] Result<> limit(__rlimit_resource which, std::uint64_t value);
// The kernel signals at `soft`, and kills at `hard` for limits that have a signal.
[[nodiscard]] Result<> limit(__rlimit_resource which, std::uint64_t soft, std::uint64_t hard);

}  // namespace hangar::sandbox
