// The internals of HostFunctions: wasmtime's linkers.
#pragma once

#include "base/result.h"
#include "wasm/host_call.h"
#include "wasm/internal/handles.h"
#include "wasm/module.h"

#include <deque>
#include <map>
#include <string>
#include <utility>

namespace hangar::wasm {

struct HostFunctions::Entry {
  std::string name;  // "host.k8s_lookup", for messages.
  Signature signature;
  std::string signature_text;
  Function function = nullptr;  // One of the two functions is set.
  WaitingFunction waiting = nullptr;
};

struct HostFunctions::Native {
  [[nodiscard]] wasmtime_linker_t* linker(Module::Allocation allocation) const {
    switch (allocation) {
      case Module::Allocation::Pooled:
        return pooled.get();
      case Module::Allocation::OnDemand:
        return on_demand.get();
      case Module::Allocation::Sleepable:
        break;
    }
    return sleepable.get();
  }

  internal::LinkerHandle pooled;  // Null when the engine has no pool.
  internal::LinkerHandle on_demand;
  internal::LinkerHandle sleepable;
  std::deque<Entry> entries;  // wasmtime holds pointers to these.
  std::map<std::pair<std::string, std::string>, const Entry*> by_name;
};

namespace internal {

// Resolves the imports of `module`; InvalidInput when one is missing or has another type.
[[nodiscard]] Result<InstancePreHandle> prepare(const HostFunctions& functions,
                                                const Module& module);

}  // namespace internal

}  // namespace hangar::wasm
