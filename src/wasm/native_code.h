// Native code between processes of one host: as a descriptor that can only be read.
#pragma once

#include "base/result.h"
#include "wasm/engine.h"
#include "wasm/module.h"

#include <memory>

namespace hangar::wasm {

// A new descriptor, for the caller to close, of the file that `module` is mapped from. Who is given
// it can change nothing of the file, whoever else maps it. Unavailable when there are no more
// descriptors. Any thread.
[[nodiscard]] Result<int> open_native_code(const Module& module);

// What open_native_code() of another process of this host has given: its bytes are trusted
// completely. Takes the descriptor over. Unavailable when it cannot be mapped. Any thread.
[[nodiscard]] Result<std::shared_ptr<const Module>> load_native_code(const Engine& engine,
                                                                     int descriptor);

}  // namespace hangar::wasm
