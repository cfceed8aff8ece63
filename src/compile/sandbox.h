// The rights that hangar-compile gives up before it reads a module. A compiler is a large program
// that reads untrusted bytes, so a bug in it must not help an attacker.
#pragma once

#include "base/result.h"
#include "wasm/limits.h"

#include <chrono>
#include <cstdint>

namespace hangar::compile {

struct Resources {
  std::uint64_t memory_bytes = limits::kCompileMemoryBytesMax;
  std::uint64_t output_bytes = limits::kCompiledBytesMax;
  std::chrono::seconds processor_time = limits::kCompileProcessorMax;
};

// Bounds memory, processor time and output, and prevents new privileges. The kernel kills the
// process together with its parent, and before it when memory is short. When its processor time is
// used up, SIGXCPU kills it.
[[nodiscard]] Result<> limit_resources(const Resources& resources = {});

// From here on only the system calls that compiling needs are allowed: memory, threads of this
// process, reading and writing open descriptors. No files, no network, no other processes; any
// other call fails with EPERM. Threads that start later inherit this: call it before any does.
[[nodiscard]] Result<> limit_system_calls();

}  // namespace hangar::compile
