// The settings of the webhooks.
#pragma once

#include "admission/webhooks.h"
#include "base/result.h"
#include "host/config.h"

#include <vector>

namespace hangar::host {

// Rows of settings().
[[nodiscard]] std::vector<Setting> webhook_settings();

// Checks that the settings fit together. InvalidInput says which one is missing.
[[nodiscard]] Result<> check(const admission::Webhooks::Options& options);

}  // namespace hangar::host
