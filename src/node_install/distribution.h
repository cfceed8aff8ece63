// Which Kubernetes distribution a node has, and with it where containerd's configuration lies, in
// which dialect, and what restarts it. Decided by looking at files only: hangar-node runs nothing
// that lies on the node before it has been asked to restart it.
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

// What a survey has found, and decided.
struct Node {
  Distribution distribution = Distribution::Containerd;
  // The file that gets our part; it need not exist.
  std::string config;
  Dialect dialect = Dialect::Toml;
  std::string_view prologue;  // Of that file if it has to be made.
  std::string plugin;
  // The file that tells which handlers there are: `config`, or what was made out of it.
  std::string effective;
  // Drop-ins of others, which containerd puts together with `effective`.
  std::vector<std::string> beside;
  std::string install_directory;
  std::string socket;
  // Services of systemd or OpenRC that may be the one which runs containerd, likeliest first.
  std::vector<std::string> services;
};

// UnknownDistribution if there is nothing that hangar-node knows; ConfigInvalid for a configuration
// that cannot be read as what it is to be. `wanted`: take this one, whatever else is there.
[[nodiscard]] Result<Node> survey(const Files& files, std::optional<Distribution> wanted);

}  // namespace hangar::node_install
