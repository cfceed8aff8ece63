// When a workflow changes to another machine, and the obstacles to that. No I/O.
#pragma once

#include "abi/statemachine/delays.h"
#include "json/value.h"
#include "workflows/ledger.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::workflows {

// The request on `manifest` that has not been answered yet; empty if there is none. A workflow that
// has not started uses the new machine without a request.
[[nodiscard]] std::string open_request(const json::Value& manifest, const Ledger& ledger);

// Describes a delay whose length the machine computes when it enters the state, because a machine
// that takes over later cannot compute it. `missing`: as Decision::missing_delays(), of the machine
// `sha256`.
[[nodiscard]] std::optional<std::string> obstacle_of(
    const std::vector<abi::statemachine::Delay>& missing, const Ledger& ledger,
    std::string_view sha256);

}  // namespace hangar::workflows
