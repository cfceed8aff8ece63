// Which system calls a process may make from here on.
//
// A program says what it needs as a list; everything else fails with EPERM rather than ending the
// process, so that a libc that tries something new still finds its fallback.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <span>
#include <vector>

namespace hangar::sandbox {

// (argument & mask) == value; `argument` counts from zero.
struct Condition {
  unsigned argument = 0;
  std::uint64_t mask = ~std::uint64_t{0};
  std::uint64_t value = 0;
};

struct AllowedCall {
  int number = 0;                          // SYS_read.
  std::vector<Condition> conditions = {};  // All of them.
};

enum class Threads : std::uint8_t {
  ThisOne,  // And those that it starts later.
  All,      // Of the process.
};

// Memory, threads and signals of this process, time, randomness, and reading and writing
// descriptors that are open already. No files, no network, no other processes. It names the calling
// process: not for a child that is forked later.
[[nodiscard]] std::vector<AllowedCall> computing_calls();

// Whether the kernel, and a container's own filter, let a process limit itself so. False in a
// sanitized build.
[[nodiscard]] bool has_system_call_filters();

// Calls of another architecture's or ABI's numbering end the process. clone3 is answered with
// ENOSYS, because its flags lie in memory where no filter can look: glibc falls back to clone.
// Gives up new privileges too. Unavailable when the kernel has no such filters. Nothing happens in
// a sanitized build.
[[nodiscard]] Result<> limit_system_calls(std::span<const AllowedCall> allowed, Threads threads);

}  // namespace hangar::sandbox
