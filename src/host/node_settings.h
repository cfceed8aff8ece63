// The settings of node provisioning, and what they amount to.
#pragma once

#include "base/result.h"
#include "host/config.h"
#include "nodes/node_controller.h"

#include <string>
#include <vector>

namespace hangar::host {

// Rows of settings(); three of them are also read from the variables that KWasm's operator takes.
[[nodiscard]] std::vector<Setting> node_settings();

// Nothing is provisioned, watched or asked for without an installer image.
[[nodiscard]] bool has_node_provisioning(const Config& config);

// Whether they can work together. InvalidInput says what is missing.
[[nodiscard]] Result<> check(const NodeSettings& settings);

// `namespace_` is where the Jobs are made.
[[nodiscard]] nodes::Options node_options(const Config& config, std::string namespace_);

}  // namespace hangar::host
