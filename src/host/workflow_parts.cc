#include "host/workflow_parts.h"

#include "abi/statemachine/program.h"
#include "host/config.h"
#include "host/module_supply.h"
#include "io/file.h"

#include <filesystem>

namespace hangar::host {

std::filesystem::path machine_directory(const Config& config) {
  return config.module_cache_dir / "machines";
}

Result<> prepare_machine_directory(const Config& config) {
  return io::make_private_directory(machine_directory(config));
}

MachineParts::MachineParts(const Config& config, ModuleSupply& supply,
                           abi::statemachine::ProgramRunner* elsewhere)
    : runtime(supply.code_cache, machine_directory(config), elsewhere),
      modules({.sources = supply.sources, .runtime = runtime}) {}

}  // namespace hangar::host
