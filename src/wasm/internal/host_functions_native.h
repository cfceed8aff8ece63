// The inside of HostFunctions: wasmtime's linkers.
#pragma once

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
  Function function = nullptr;  // One of the two.
  WaitingFunction waiting = nullptr;
};

struct HostFunctions::Native {
  [[nodiscard]] wasmtime_linker_t* linker(Module::Allocation allocation) const {
    return allocation == Module::Allocation::Pooled ? pooled.get() : on_demand.get();
  }

  internal::LinkerHandle pooled;  // Null when the engine has no pool.
  internal::LinkerHandle on_demand;
  std::deque<Entry> entries;  // wasmtime holds pointers to them.
  std::map<std::pair<std::string, std::string>, const Entry*> by_name;
};

}  // namespace hangar::wasm
