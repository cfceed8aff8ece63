// What went wrong inside a guest, as text for the one who wrote it.
#pragma once

#include "wasm/internal/handles.h"

#include <string>
#include <string_view>

namespace hangar::wasm::internal {

// "unreachable executed; at main.run < main.main < _start". Names come from the guest: they are
// shortened and cleaned of what is not printable.
[[nodiscard]] std::string describe(const wasm_trap_t& trap);

// The same for errors, which are what host functions and wasmtime itself end a guest with; only the
// "at ..." part when the error has a backtrace, for its message is then known to the host.
[[nodiscard]] std::string describe(const wasmtime_error_t& error);

// The path of a mangled name, without hashes, templates and arguments: "_ZN3foo3bar17h...E" is
// "foo::bar". Names of other forms are returned as they are. Linear in its length: full demanglers
// take exponential time on names made for that.
[[nodiscard]] std::string demangle_path(std::string_view name);

}  // namespace hangar::wasm::internal
