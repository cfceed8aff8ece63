// A machine drawn, with where it is: from the definition that Machine::definition() gives.
#pragma once

#include "base/result.h"

#include <string>
#include <string_view>

namespace hangar::abi::statemachine {

// Both: `value` is a state's value as Step::value has it; empty: nowhere. InvalidInput when one of
// the two is not what it should be. What machines are called comes from strangers: control
// characters and what the notation means otherwise are taken out of names.

// A stateDiagram-v2; active states have the class `active`.
[[nodiscard]] Result<std::string> draw_mermaid(std::string_view definition, std::string_view value);

// For a terminal: a tree of states, a line for each transition, `>` before active states.
[[nodiscard]] Result<std::string> draw_tree(std::string_view definition, std::string_view value);

}  // namespace hangar::abi::statemachine
