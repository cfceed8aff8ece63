// Draws a machine and its current state, from the definition that Machine::definition() returns.
#pragma once

#include "base/result.h"

#include <string>
#include <string_view>

namespace hangar::abi::statemachine {

// For both functions: `value` is the value of a state, as in Step::value; empty: no current state.
// InvalidInput when either is not valid. Names in a machine are untrusted: control characters, and
// characters with a meaning in the notation, are removed.

// A stateDiagram-v2; active states have the class `active`.
[[nodiscard]] Result<std::string> draw_mermaid(std::string_view definition, std::string_view value);

// For a terminal: a tree of states, a line for each transition, `>` before active states.
[[nodiscard]] Result<std::string> draw_tree(std::string_view definition, std::string_view value);

}  // namespace hangar::abi::statemachine
