// Names of guests in commands. Records name workflows and instances by their resources. In commands
// a workflow is "workflow/NAME", or just NAME if its kind is shown too.
#pragma once

#include "recorder/record.h"

#include <string>
#include <string_view>

namespace hangar::commands {

// The name in records for a name in a command.
[[nodiscard]] std::string recorded_name(std::string_view name);
// The name to show next to the kind.
[[nodiscard]] std::string_view shown_name(recorder::Contract contract, std::string_view name);

// The resource of the instances of an Airway, which is the Airway's name. Empty: the name in
// records is not that of an Airway.
[[nodiscard]] std::string_view instances_of(std::string_view recorded_name);

}  // namespace hangar::commands
