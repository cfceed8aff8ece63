// For wasm/wasi/ only: what its host functions have in common.
#pragma once

#include "base/result.h"
#include "wasm/host_call.h"
#include "wasm/wasi/errno.h"
#include "wasm/wasi/preview1.h"

#include <cstdint>

namespace hangar::wasm::wasi {

// What a function answers: an Errno, unless the run is over.
using Status = Result<std::uint32_t>;

[[nodiscard]] inline Process& process_of(HostCall call) {
  return call.state<Process>();
}

// Of an access to the guest's memory.
[[nodiscard]] inline Errno status(const Result<>& result) {
  return result ? kSuccess : kFault;
}

// The functions fd_* and path_*.
void add_descriptor_functions(HostFunctions& functions);

}  // namespace hangar::wasm::wasi
