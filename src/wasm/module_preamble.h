// The first eight bytes of a module.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <span>

namespace hangar::wasm {

// InvalidInput for what does not begin as a core module does, with what it is instead. Any thread.
[[nodiscard]] Result<> check_preamble(std::span<const std::byte> module);

}  // namespace hangar::wasm
