// The Events about a workflow after a write of its status: they report only what that write made
// true. No I/O.
#pragma once

#include "reconcile/event_log.h"
#include "workflows/decision.h"
#include "workflows/verdict.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::workflows {

// `ignored`: the types of signals that the machine did not know in the state `value`.
[[nodiscard]] std::vector<reconcile::EventText> announcements_of(
    const std::vector<Decision::Transition>& transitions, const std::vector<std::string>& ignored,
    std::string_view value, const std::optional<Problem>& problem);

}  // namespace hangar::workflows
