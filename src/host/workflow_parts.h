// Loads the machines of workflows, with and without a cluster.
#pragma once

#include "abi/statemachine/program.h"
#include "abi/statemachine/runtime.h"
#include "base/result.h"
#include "host/config.h"
#include "host/module_supply.h"
#include "workflows/machine_modules.h"

#include <filesystem>

namespace hangar::host {

// The directory of the memory images that machines start from; prepare_machine_directory() creates
// it.
[[nodiscard]] std::filesystem::path machine_directory(const Config& config);
// `config` is resolved. Denied when other users may write there.
[[nodiscard]] Result<> prepare_machine_directory(const Config& config);

// The parts for machines that need no cluster, for the host and for commands.
struct MachineParts {
  // `elsewhere` runs the machines outside this process; null: they run in this process. It outlives
  // this object.
  MachineParts(const Config& config, ModuleSupply& supply,
               abi::statemachine::ProgramRunner* elsewhere = nullptr);

  abi::statemachine::Runtime runtime;
  workflows::MachineModules modules;
};

}  // namespace hangar::host
