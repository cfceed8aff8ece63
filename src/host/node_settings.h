// The settings of node provisioning, and the options of the controller that follow from them.
#pragma once

#include "base/result.h"
#include "host/config.h"
#include "nodes/node_controller.h"

#include <string>
#include <vector>

namespace hangar::host {

// Rows of settings(). Some are also read from the variables of KWasm's operator.
[[nodiscard]] std::vector<Setting> node_settings();

// False without an installer image: then nothing is provisioned, watched or requested.
[[nodiscard]] bool has_node_provisioning(const Config& config);

// Checks that the settings fit together. InvalidInput says which one is missing or does not fit.
[[nodiscard]] Result<> check(const NodeSettings& settings);

// `namespace_` is the namespace of the Jobs.
[[nodiscard]] nodes::Options node_options(const Config& config, std::string namespace_);

}  // namespace hangar::host
