// How people name guests. Records name workflows and instances by their resources; a workflow is
// "workflow/NAME" in commands, and NAME where its kind is shown beside it.
#pragma once

#include "recorder/record.h"

#include <string>
#include <string_view>

namespace hangar::commands {

// As records have it, of what was written in a command.
[[nodiscard]] std::string recorded_name(std::string_view name);
// As it is shown beside its kind.
[[nodiscard]] std::string_view shown_name(recorder::Contract contract, std::string_view name);

}  // namespace hangar::commands
