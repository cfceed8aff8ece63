// The kinds of yoke.cd in the cluster, for a host that stands in for yoke's Air Traffic Controller:
// that one brings its own, and is not installed by a chart.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "host/config.h"

namespace hangar::commands {

// Applies the CustomResourceDefinitions of Airway, Flight and ClusterFlight and waits until they
// are served; deletes the webhook configurations that a controller which was killed has left. The
// rights of the login must allow it. Blocking.
[[nodiscard]] Result<> apply_yoke_kinds(const host::Config& config, const Log& log);

}  // namespace hangar::commands
