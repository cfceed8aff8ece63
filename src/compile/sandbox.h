// What hangar-compile gives up before it looks at a module: a compiler is a large program that
// reads a stranger's bytes, so a mistake in it must not be worth anything.
#pragma once

#include "base/result.h"
#include "wasm/limits.h"

#include <chrono>
#include <cstdint>

namespace hangar::compile {

struct Resources {
  std::uint64_t memory_bytes = limits::kCompileMemoryBytesMax;
  std::chrono::seconds processor_time = limits::kCompileProcessorMax;
};

// Bounds memory, processor time and output; no new privileges; dies with its parent, and before it
// when memory is short. When its processor time is used up, it ends by SIGXCPU.
[[nodiscard]] Result<> limit_resources(const Resources& resources = {});

// From here on only what compiling needs of the kernel: memory, threads of this process, reading
// and writing descriptors that are open already. No files, no network, no other processes; what is
// not allowed fails with EPERM. Inherited by threads that are started later: call it before any.
[[nodiscard]] Result<> limit_system_calls();

}  // namespace hangar::compile
