// Passes native code between processes of one host, as a read-only descriptor.
#pragma once

#include "base/result.h"
#include "wasm/engine.h"
#include "wasm/module.h"

#include <memory>

namespace hangar::wasm {

// Opens another descriptor for the file from which `module` is mapped; the caller closes it. A
// process that receives it cannot change the file, whoever else maps it. Unavailable when there are
// no descriptors left. Any thread.
[[nodiscard]] Result<int> open_native_code(const Module& module);

// Loads a descriptor from open_native_code() of another process of this host; its bytes are trusted
// completely. Takes ownership of the descriptor. Unavailable when it cannot be mapped. Any thread.
[[nodiscard]] Result<std::shared_ptr<const Module>> load_native_code(
    const Engine& engine, int descriptor,
    Module::Allocation allocation = Module::Allocation::Pooled);

}  // namespace hangar::wasm
