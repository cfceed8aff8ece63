// The internals of HostFunctions: wasmtime's linkers.
#pragma once

#include "base/result.h"
#include "wasm/engine.h"
#include "wasm/host_call.h"
#include "wasm/internal/engine_native.h"
#include "wasm/internal/handles.h"
#include "wasm/module.h"

#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace hangar::wasm {

struct HostFunctions::Entry {
  std::string module = {};
  std::string name = {};
  Signature signature;
  std::string signature_text = {};
  Function function = nullptr;  // One of the two functions is set.
  WaitingFunction waiting = nullptr;
};

// Filling a linker takes longer than starting a guest, and most processes need one of several, so
// each is filled when the first module needs it.
struct HostFunctions::Native {
  explicit Native(const EngineParts& parts) : engines(parts.native()) {}

  // The engine has a pool if a module was loaded for it. Any thread, once all functions are
  // registered.
  [[nodiscard]] const wasmtime_linker_t& linker(Module::Allocation allocation) const;

  const EngineParts::Native& engines;
  std::deque<Entry> entries;  // wasmtime holds pointers to these.
  std::map<std::pair<std::string, std::string>, const Entry*> by_name;

 private:
  struct Linker {
    std::once_flag filled;
    internal::LinkerHandle handle;
  };
  [[nodiscard]] const wasmtime_linker_t& filled(Linker& linker, wasm_engine_t& engine) const;

  mutable Linker pooled_;
  mutable Linker on_demand_;
  mutable Linker sleepable_;
};

namespace internal {

// Resolves the imports of `module`; InvalidInput when one is missing or has another type.
[[nodiscard]] Result<InstancePreHandle> prepare(const HostFunctions& functions,
                                                const Module& module);

}  // namespace internal

}  // namespace hangar::wasm
