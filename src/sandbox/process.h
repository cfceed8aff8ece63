// What a process gives up of itself.
#pragma once

#include "base/result.h"

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>

namespace hangar::sandbox {

// No program that it starts has more rights than it; its memory is not for others: no core dump, no
// debugger, nothing of it in /proc but to root.
[[nodiscard]] Result<> give_up_privileges();
// The second half alone: for a process that starts others. In a sanitized build nothing happens:
// the leak sanitizer is a debugger.
[[nodiscard]] Result<> hide_memory();

// When memory is short the kernel ends it before others, such as the host. Whoever may not say so
// has other bounds.
void end_first_when_memory_is_short();

// It is killed when the thread that started it ends. Unavailable when `parent` has ended already.
[[nodiscard]] Result<> die_with(pid_t parent);

// Neither it nor who takes it over can raise it again.
[[nodiscard]] Result<> limit(__rlimit_resource which, std::uint64_t value);
// The kernel signals at `soft`, and kills at `hard` where it has a signal for it.
[[nodiscard]] Result<> limit(__rlimit_resource which, std::uint64_t soft, std::uint64_t hard);

}  // namespace hangar::sandbox
