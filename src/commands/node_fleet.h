// `hangar nodes`: the present state of the fleet in the API server.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "host/config.h"

#include <cstdint>
#include <string>

namespace hangar::commands {

enum class FleetFormat : std::uint8_t { Table, Json };

// The text to print. Reads the Nodes, and the record of the rollout in the namespace of `config`
// (or of the kubeconfig). Without the record, the annotations of the nodes are still shown.
[[nodiscard]] Result<std::string> node_fleet(const host::Config& config, FleetFormat format,
                                             const Log& log);

}  // namespace hangar::commands
