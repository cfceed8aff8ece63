// What all guest processes have in common. The zygote makes it once, before it forks the first one,
// so that none has to: a start takes a fraction of the time.
#pragma once

#include "abi/flight/evaluation.h"
#include "base/result.h"
#include "guest/walls.h"
#include "sandbox/system_calls.h"
#include "wasm/engine.h"
#include "wasm/host_call.h"

#include <memory>

namespace hangar::guest {

// No thread, no descriptor, and nothing of a guest. A forked process has its own copy.
struct Prepared {
  // `add_functions`: imports of the guests besides those of their contract, for tests of the walls.
  explicit Prepared(const abi::flight::Runtime::AddFunctions& add_functions = {});

  const Result<sandbox::SystemCallFilter> last_wall;
  const wasm::EngineParts engine_parts;
  const abi::flight::Runtime::Functions of_flights;
  const std::shared_ptr<const wasm::HostFunctions> of_operators;
  const std::shared_ptr<const wasm::HostFunctions> of_machines;
};

}  // namespace hangar::guest
