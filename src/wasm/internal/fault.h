// Describes a failure inside a guest as text for the guest's author.
#pragma once

#include "wasm/internal/handles.h"

#include <string>

namespace hangar::wasm::internal {

// "unreachable executed; at main.(*Job).Run < main.main < _start", with at most kBacktraceFramesMax
// functions, the innermost first. A module without a name section has only their numbers. Names
// come from the guest: they are shortened, and everything but printable ASCII is escaped.
[[nodiscard]] std::string describe(const wasm_trap_t& trap);

// The same for errors with which host functions and wasmtime itself stop a guest. Only the "at ..."
// part when the error has a backtrace, because the host then knows its message.
[[nodiscard]] std::string describe(const wasmtime_error_t& error);

}  // namespace hangar::wasm::internal
