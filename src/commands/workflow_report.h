// The text of `hangar workflow show`, from the objects that were read.
#pragma once

#include "base/result.h"
#include "json/value.h"
#include "workflows/ledger.h"

#include <string>
#include <vector>

namespace hangar::commands {

struct WorkflowFindings {
  json::Value manifest;
  Result<workflows::Ledger> ledger;           // The status.
  Result<std::string> drawing;                // The drawing of the machine.
  Result<std::vector<json::Value>> warnings;  // Events about it, in any order.
};

// State and conditions, the drawing, the history, pending actions and timers, the latest warnings.
// If the status cannot be read: the conditions, which explain how to repair it, and the warnings.
[[nodiscard]] std::string report_on(const WorkflowFindings& findings);

}  // namespace hangar::commands
