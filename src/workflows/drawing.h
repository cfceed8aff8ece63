// A machine's definition (abi::statemachine::Machine::definition) as people look at it, with the
// states that are active now marked. Definitions come from guests: what is no definition is left
// out, names cannot leave their place.
#pragma once

#include "json/value.h"

#include <string>
#include <string_view>

namespace hangar::workflows {

// For a terminal: the states as a tree, each with its transitions. `value` as Ledger::value.
[[nodiscard]] std::string draw_tree(const json::Value& definition, std::string_view value);

// A Mermaid state diagram.
[[nodiscard]] std::string draw_mermaid(const json::Value& definition, std::string_view value);

}  // namespace hangar::workflows
