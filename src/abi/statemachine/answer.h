// Parses and checks the answer of a machine. docs/abi/statemachine.md describes the document.
// Machines of every shape answer in this form, and nothing in it is trusted.
#pragma once

#include "abi/statemachine/machine.h"
#include "base/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace hangar::abi::statemachine {

// The answer to an event in state `before`, or to the start when that is empty. Errors as
// for Machine.
[[nodiscard]] Result<Step> read_answer(std::string_view text, std::string_view before);

// The answer to a request for the actors in a state.
[[nodiscard]] Result<std::vector<Actor>> read_actors(std::string_view text);

// The answer to a request for the definition.
[[nodiscard]] Result<std::string> read_definition(std::string_view text);

// `state` in the form in which a machine, hangar's or another one, receives it: with the two
// members that XState 4 omits from the JSON of a state but needs when it ignores an event.
// InvalidInput when it is not JSON.
[[nodiscard]] Result<std::string> restorable(const std::string& state);

// InvalidInput, which calls the text `what`, when `text` is not JSON.
[[nodiscard]] Result<> check_json(std::string_view text, std::string_view what);

}  // namespace hangar::abi::statemachine
