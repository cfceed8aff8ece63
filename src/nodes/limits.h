// Bounds of node provisioning, each with the reason for its number.
#pragma once

#include <chrono>
#include <cstddef>

namespace hangar::limits {

// Nodes that are worked on at the same time, whatever share of the fleet is allowed: their names
// are in one ConfigMap.
inline constexpr std::size_t kNodesInProgressMax = 1000;

// How long a node is given to stop being Ready after its container runtime was restarted, and how
// long to be Ready again. The kubelet notices a runtime that is gone within some seconds.
inline constexpr std::chrono::seconds kNodeReadyMin{10};
inline constexpr std::chrono::seconds kNodeReadyMax{300};

// Between attempts on one node. Each restarts its container runtime.
inline constexpr std::chrono::seconds kNodeRetryMin{60};
inline constexpr std::chrono::seconds kNodeRetryMax{1800};

// One install or uninstall, the pull of its image included; and how long its Job is kept to be
// looked at.
inline constexpr std::chrono::seconds kNodeJobMax{600};
inline constexpr std::chrono::seconds kNodeJobKept{3600};

}  // namespace hangar::limits
