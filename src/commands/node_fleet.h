// `hangar nodes`: the state of the fleet in the API server.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "commands/streams.h"
#include "host/config.h"

#include <cstdint>
#include <string>

namespace hangar::commands {

enum class FleetFormat : std::uint8_t { Table, Json };

// The text to print. Reads the Nodes, and the record of the rollout in the namespace of `config`
// (or of the kubeconfig). Without the record, the annotations of the nodes are still shown.
[[nodiscard]] Result<std::string> node_fleet(const host::Config& config, FleetFormat format,
                                             const Log& log);

struct WatchedFleet {
  std::string text;        // As node_fleet returns it.
  bool is_halted = false;  // A node has failed.
};
// Waits until the rollout is done or halted; `show` receives its progress, and an empty text at the
// end; null: shows nothing. An API server that does not answer, such as that of a node on which the
// installer restarts containerd, is asked again.
[[nodiscard]] Result<WatchedFleet> watch_fleet(const host::Config& config, FleetFormat format,
                                               const Say& show, const Log& log);

}  // namespace hangar::commands
