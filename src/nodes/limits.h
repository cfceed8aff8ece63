// Bounds of node provisioning, each with the reason for its number.
#pragma once

#include <chrono>
#include <cstddef>

namespace hangar::limits {

// Nodes in progress at the same time, whatever share of the fleet is allowed: one ConfigMap holds
// their names.
inline constexpr std::size_t kNodesInProgressMax = 1000;

// How long to wait for a node to stop being Ready after its container runtime was restarted, and
// how long for it to be Ready again. The kubelet notices a missing runtime within some seconds.
inline constexpr std::chrono::seconds kNodeReadyMin{10};
inline constexpr std::chrono::seconds kNodeReadyMax{300};

// The least time between attempts on one node. Each attempt restarts the node's container runtime.
inline constexpr std::chrono::seconds kNodeRetryMin{60};
inline constexpr std::chrono::seconds kNodeRetryMax{1800};

// The time for one install or uninstall, including the pull of its image; and how long its Job is
// kept for inspection.
inline constexpr std::chrono::seconds kNodeJobMax{600};
inline constexpr std::chrono::seconds kNodeJobKept{3600};

}  // namespace hangar::limits
