// The first eight bytes of a module.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <span>

namespace hangar::wasm {

// InvalidInput for bytes that do not begin like a core module; the message says what they are. Any
// thread.
[[nodiscard]] Result<> check_preamble(std::span<const std::byte> module);

// LimitExceeded for a module that is larger than the limit; otherwise as above.
[[nodiscard]] Result<> check_size_and_preamble(std::span<const std::byte> module);

}  // namespace hangar::wasm
