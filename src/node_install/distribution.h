// Finds the Kubernetes distribution of a node, and with it the place and dialect of containerd's
// configuration, and the service to restart. It reads files only: hangar-node runs no program of
// the node before it restarts a service.
#pragma once

#include "base/result.h"
#include "node_install/config_edit.h"
#include "node_install/files.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::node_install {

enum class Distribution : std::uint8_t { Containerd, Kind, K3s, Rke2, K0s, Microk8s };

[[nodiscard]] std::string_view name_of(Distribution distribution);
[[nodiscard]] std::optional<Distribution> distribution_named(std::string_view name);
// "containerd, kind, ..."
[[nodiscard]] std::string distribution_names();

// The results and decisions of a survey.
struct Node {
  Distribution distribution = Distribution::Containerd;
  // The file that receives our part; it need not exist.
  std::string config;
  Dialect dialect = Dialect::Toml;
  std::string_view prologue;  // First line of that file if it has to be created.
  std::string plugin;
  // The file with the handlers in effect: `config`, or the file rendered from it.
  std::string effective;
  // Drop-ins of others, which containerd merges with `effective`.
  std::vector<std::string> beside;
  std::string install_directory;
  std::string socket;
  // Services of systemd or OpenRC that may run containerd, likeliest first.
  std::vector<std::string> services;
};

// UnknownDistribution if hangar-node recognises nothing; ConfigInvalid for a configuration that
// cannot be read in its dialect. `wanted`: use this distribution without detection.
[[nodiscard]] Result<Node> survey(const Files& files, std::optional<Distribution> wanted);

}  // namespace hangar::node_install
