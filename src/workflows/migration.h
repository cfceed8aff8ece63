// When a workflow changes to another machine, and what keeps it from that. No I/O.
#pragma once

#include "abi/statemachine/delays.h"
#include "json/value.h"
#include "workflows/ledger.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::workflows {

// The request on `manifest` that nobody has answered yet; empty if there is none. A workflow that
// has not begun begins with the new machine anyway.
[[nodiscard]] std::string open_request(const json::Value& manifest, const Ledger& ledger);

// A delay whose length the machine computes when it enters the state: a machine that comes later
// cannot say how long it is. `missing`: as Decision::missing_delays(), of the machine `sha256`.
[[nodiscard]] std::optional<std::string> obstacle_of(
    const std::vector<abi::statemachine::Delay>& missing, const Ledger& ledger,
    std::string_view sha256);

}  // namespace hangar::workflows
