// Runs hangar-compile for one module: to compile it, or to verify its signature.
#pragma once

#include "base/result.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"
#include "wasm/limits.h"
#include "wasm/snapshot/private_file.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

namespace hangar::wasm {

struct CompileJob {
  std::filesystem::path program;   // hangar-compile.
  PrivateFile input;               // The module.
  std::filesystem::path output;    // Created, or replaced.
  std::uint64_t memory_bytes = 0;  // The memory of the process, besides its input.
  std::uint64_t output_bytes = limits::kCompiledBytesMax;  // The maximum size of the output.
  // For CodeTarget::any_machine(); otherwise for this_machine().
  bool is_for_any_machine = false;
  // Wall-clock time. The program itself bounds its processor time.
  std::chrono::nanoseconds deadline{};
  // Called from time to time with the processor time that the process has used, and once after it
  // has exited. Returns whether the process may continue. Empty: it may.
  std::function<bool(std::chrono::nanoseconds used)> may_go_on = {};
  std::chrono::nanoseconds asks_every = std::chrono::seconds(1);
};

// Writes native code for the module to `job.output`. InvalidInput: the module is at fault; the
// message is the compiler's. LimitExceeded: the compilation exceeded its processor time, memory,
// output size or deadline. Cancelled: the process was killed because of `stop`. Unavailable: it was
// killed because `may_go_on` returned false, or failed for any other reason. The output is complete
// only after success. Loop thread.
[[nodiscard]] io::Task<Result<>> compile(io::Loop& loop, io::Workers& workers,
                                         budget::Consumer whose, CompileJob job,
                                         std::stop_token stop);

struct VerifyJob {
  std::filesystem::path program;  // hangar-compile.
  PrivateFile input;              // The module.
  std::vector<std::string> keys;  // Each a SubjectPublicKeyInfo in base64.
  std::chrono::nanoseconds deadline{};
};

// InvalidInput, with the reason, when none of the keys has signed the module. The other errors are
// those of compile().
[[nodiscard]] io::Task<Result<>> verify(io::Loop& loop, io::Workers& workers,
                                        budget::Consumer whose, VerifyJob job,
                                        std::stop_token stop);

}  // namespace hangar::wasm
