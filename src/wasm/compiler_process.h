// Runs hangar-compile for one module.
#pragma once

#include "base/result.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"

#include <chrono>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>

namespace hangar::wasm {

struct CompileJob {
  std::filesystem::path program;  // hangar-compile.
  std::shared_ptr<const std::string> wasm_bytes;
  std::filesystem::path output;  // Created, or replaced.
  // By the clock. The program bounds its processor time itself.
  std::chrono::nanoseconds deadline{};
};

// Writes native code for the module to `job.output`. InvalidInput: the module is at fault, with the
// compiler's words. LimitExceeded: it takes more processor time or memory than is allowed, or has
// not ended at the deadline. Cancelled: the process was killed because of `stop`. Unavailable:
// anything else. The output is complete only after success. Loop thread.
[[nodiscard]] io::Task<Result<>> compile(io::Loop& loop, io::Workers& workers, CompileJob job,
                                         std::stop_token stop);

}  // namespace hangar::wasm
