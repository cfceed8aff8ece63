// Applies the kinds of yoke.cd, for a host that replaces yoke's Air Traffic Controller. That
// controller applies its kinds itself; no chart does.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "host/config.h"

namespace hangar::commands {

// Applies the CustomResourceDefinitions of Airway, Flight and ClusterFlight and waits until they
// are served. Deletes the webhook configurations that a killed controller left behind. The login
// needs the rights for that. Blocking.
[[nodiscard]] Result<> apply_yoke_kinds(const host::Config& config, const Log& log);

}  // namespace hangar::commands
