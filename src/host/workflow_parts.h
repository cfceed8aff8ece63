// Where the machines of workflows come from, with and without a cluster.
#pragma once

#include "abi/statemachine/runtime.h"
#include "base/result.h"
#include "host/config.h"
#include "host/module_supply.h"
#include "workflows/machine_modules.h"

#include <filesystem>

namespace hangar::host {

// Where what machines begin with lies; made by prepare_machine_directory().
[[nodiscard]] std::filesystem::path machine_directory(const Config& config);
// Of a resolved configuration. Denied when others may write there.
[[nodiscard]] Result<> prepare_machine_directory(const Config& config);

// Machines without a cluster: for the host and for the command line.
struct MachineParts {
  MachineParts(const Config& config, ModuleSupply& supply);

  abi::statemachine::Runtime runtime;
  workflows::MachineModules modules;
};

}  // namespace hangar::host
