// Describes a failure inside a guest as text for the guest's author.
#pragma once

#include "wasm/internal/handles.h"

#include <string>
#include <string_view>

namespace hangar::wasm::internal {

// "unreachable executed; at main.run < main.main < _start". Names come from the guest: they are
// shortened, and unprintable characters are removed.
[[nodiscard]] std::string describe(const wasm_trap_t& trap);

// The same for errors with which host functions and wasmtime itself stop a guest. Only the "at ..."
// part when the error has a backtrace, because the host then knows its message.
[[nodiscard]] std::string describe(const wasmtime_error_t& error);

// The path in a mangled name, without hashes, templates and arguments: "_ZN3foo3bar17h...E" is
// "foo::bar". Names of other forms are returned unchanged. Takes linear time; full demanglers take
// exponential time on hostile names.
[[nodiscard]] std::string demangle_path(std::string_view name);

}  // namespace hangar::wasm::internal
