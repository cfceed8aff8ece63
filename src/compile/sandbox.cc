#include "compile/sandbox.h"

#include "base/result.h"
#include "sandbox/process.h"
#include "sandbox/sandboxed.h"
#include "sandbox/system_calls.h"
#include "wasm/limits.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>

namespace hangar::compile {

Result<> limit_resources(const Resources& resources) {
  sandbox::end_first_when_memory_is_short();
  HANGAR_TRY(sandbox::give_up_privileges());
  // If the host exited before this program started, the time limit kills this program.
  HANGAR_TRY(sandbox::die_with(::getppid()));
  HANGAR_TRY(sandbox::limit(RLIMIT_FSIZE, resources.output_bytes));
  HANGAR_TRY(sandbox::limit(RLIMIT_NOFILE, 16));
  const auto seconds = static_cast<std::uint64_t>(resources.processor_time.count());
  // Above the soft limit: at the hard limit the kernel sends SIGKILL, which would look like a kill
  // by another process.
  HANGAR_TRY(sandbox::limit(RLIMIT_CPU, seconds, seconds + 1));
  if (!sandbox::kIsSandboxed) return {};
  // Counts memory that the process writes to; address space that is only reserved does not count.
  HANGAR_TRY(sandbox::limit(RLIMIT_DATA, resources.memory_bytes));
  return sandbox::limit(RLIMIT_AS, limits::kCompileMemoryBytesMax);
}

Result<> limit_system_calls() {
  return sandbox::limit_system_calls(sandbox::computing_calls(), sandbox::Threads::ThisOne);
}

}  // namespace hangar::compile
