// What a machine answers, read and checked. docs/abi/statemachine.md has the document; every shape
// of machine gives it, and nothing in it is believed.
#pragma once

#include "abi/statemachine/machine.h"
#include "base/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace hangar::abi::statemachine {

// The answer to an event in state `before`, or to the start when that is empty. Errors as Machine
// has them.
[[nodiscard]] Result<Step> read_answer(std::string_view text, std::string_view before);

// The answer to a question for the actors in a state.
[[nodiscard]] Result<std::vector<Actor>> read_actors(std::string_view text);

// The answer to a question for the definition.
[[nodiscard]] Result<std::string> read_definition(std::string_view text);

// `state` as a machine of ours or of others is given it: with the two members that XState 4 leaves
// out of a state's JSON and needs when it ignores an event.
// InvalidInput when it is not JSON.
[[nodiscard]] Result<std::string> restorable(const std::string& state);

// InvalidInput, naming it as `what`, when `text` is not JSON.
[[nodiscard]] Result<> check_json(std::string_view text, std::string_view what);

}  // namespace hangar::abi::statemachine
