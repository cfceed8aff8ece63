// Limits the system calls that a process may make from here on.
//
// A program lists the calls that it needs. Every other call fails with EPERM and does not end the
// process, so that a libc that tries something new still finds its fallback.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <span>
#include <vector>

namespace hangar::sandbox {

// (argument & mask) == value; arguments count from zero.
struct Condition {
  unsigned argument = 0;
  std::uint64_t mask = ~std::uint64_t{0};
  std::uint64_t value = 0;
};

struct AllowedCall {
  int number = 0;                          // SYS_read.
  std::vector<Condition> conditions = {};  // All must hold.
};

enum class Threads : std::uint8_t {
  ThisOne,  // And the threads that it starts later.
  All,      // All threads of the process.
};

// As the value of a condition: the id of the process that the filter is applied to. No process has
// this id, because ids have 22 bits at most.
inline constexpr std::uint64_t kOwnProcess = 0x7ffffff1;

// Memory, threads and signals of this process, time, randomness, and reading and writing open
// descriptors. No files, no network, no other processes.
[[nodiscard]] std::vector<AllowedCall> computing_calls();

// Waiting for descriptors and for time by an epoll that exists already.
[[nodiscard]] std::vector<AllowedCall> waiting_calls();

// True when the kernel, and the container's own filter, allow limit_system_calls(). False in a
// sanitized build.
[[nodiscard]] bool has_system_call_filters();

// A compiled list. Compiling takes longer than all other walls of a process together, so a process
// that forks others compiles their list once.
class SystemCallFilter {
 public:
  // One instruction of a filter, as the kernel reads it (sock_filter of linux/filter.h).
  struct Instruction {
    std::uint16_t code = 0;
    std::uint8_t jump_true = 0;
    std::uint8_t jump_false = 0;
    std::uint32_t value = 0;
  };

  [[nodiscard]] static Result<SystemCallFilter> compile(std::span<const AllowedCall> allowed);

  // Also gives up gaining new privileges. The kernel kills the process if it makes a system call of
  // another architecture or ABI. clone3 fails with ENOSYS, because its flags lie in memory, where a
  // filter cannot look: glibc falls back to clone. Unavailable when the kernel has no such filters.
  // Does nothing in a sanitized build.
  [[nodiscard]] Result<> apply(Threads threads) const;

 private:
  std::vector<Instruction> instructions_;  // Empty in a sanitized build.
};

// Compiles the list and applies it.
[[nodiscard]] Result<> limit_system_calls(std::span<const AllowedCall> allowed, Threads threads);

}  // namespace hangar::sandbox
