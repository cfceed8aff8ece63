// `hangar nodes`: the fleet as the API server has it now.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "host/config.h"

#include <cstdint>
#include <string>

namespace hangar::commands {

enum class FleetFormat : std::uint8_t { Table, Json };

// The text to print. Reads the Nodes, and the rollout's record in `config`'s namespace (or that of
// the kubeconfig); without the record the nodes still say for themselves.
[[nodiscard]] Result<std::string> node_fleet(const host::Config& config, FleetFormat format,
                                             const Log& log);

}  // namespace hangar::commands
