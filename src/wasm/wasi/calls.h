// Shared by the host functions of wasm/wasi/.
#pragma once

#include "base/result.h"
#include "wasm/host_call.h"
#include "wasm/wasi/errno.h"
#include "wasm/wasi/preview1.h"

#include <cstdint>

namespace hangar::wasm::wasi {

// The result of a function: an Errno, or an error that ends the run.
using Status = Result<std::uint32_t>;

[[nodiscard]] inline Process& process_of(HostCall call) {
  return call.state<Process>();
}

// The status for an access to the guest's memory.
[[nodiscard]] inline Errno status(const Result<>& result) {
  return result ? kSuccess : kFault;
}

// Registers the functions fd_* and path_*.
void add_descriptor_functions(HostFunctions& functions);

}  // namespace hangar::wasm::wasi
