// hangar-guest under an attacker who has escaped from WebAssembly: the functions that its guests
// import as "probe" make any system call, and return where their memory lies. For tests of the
// sandbox: a build without one does nothing.
#include "base/result.h"
#include "guest/guest_process.h"
#include "guest/prepared.h"
#include "guest/zygote.h"
#include "guest_protocol/zygote_messages.h"
#include "sandbox/process.h"
#include "sandbox/sandboxed.h"
#include "wasm/guest_memory.h"
#include "wasm/host_call.h"

#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace {

using hangar::Result;
using hangar::wasm::HostCall;

// The result, or the negative error number.
Result<std::uint64_t> make_call(HostCall /*call*/, std::uint64_t number, std::uint64_t a,
                                std::uint64_t b, std::uint64_t c, std::uint64_t d, std::uint64_t e,
                                std::uint64_t f) {
  const long result = ::syscall(static_cast<long>(number), a, b, c, d, e, f);
  return static_cast<std::uint64_t>(result < 0 ? -long{errno} : result);
}

Result<std::uint64_t> memory_address(HostCall call) {
  const hangar::wasm::GuestMemory memory = HANGAR_TRY(call.memory());
  return reinterpret_cast<std::uintptr_t>(memory.bytes().data());
}

Result<std::uint64_t> crash(HostCall /*call*/, std::uint64_t address) {
  return *reinterpret_cast<const volatile std::uint64_t*>(address);
}

Result<std::uint64_t> abort_process(HostCall /*call*/) {
  std::abort();
}

}  // namespace

int main() {
  if (!hangar::sandbox::kIsSandboxed) return 1;
  if (!hangar::sandbox::die_with(::getppid())) return 1;
  const hangar::guest::Prepared prepared([](hangar::wasm::HostFunctions& functions) {
    functions.add<&make_call>("probe", "call");
    functions.add<&memory_address>("probe", "address");
    functions.add<&crash>("probe", "peek");
    functions.add<&abort_process>("probe", "abort");
  });
  hangar::guest::run_zygote(
      hangar::guest_protocol::kSocket,
      [&prepared](const hangar::guest_protocol::ForkProcess& order, int socket, pid_t zygote) {
        return hangar::guest::run_guest_process(prepared, order, socket, zygote);
      });
  return 0;
}
