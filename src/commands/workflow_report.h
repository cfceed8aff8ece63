// What `hangar workflow show` prints of a workflow, from what was found out about it.
#pragma once

#include "base/result.h"
#include "json/value.h"
#include "workflows/ledger.h"

#include <string>
#include <vector>

namespace hangar::commands {

struct WorkflowFindings {
  json::Value manifest;
  Result<workflows::Ledger> ledger;           // Of the status.
  Result<std::string> drawing;                // Of the machine.
  Result<std::vector<json::Value>> warnings;  // Events about it, in any order.
};

// Where it is and its conditions, the drawing, the history, what is under way, the latest warnings.
// Of a status that cannot be read: the conditions, which say how to repair it, and the warnings.
[[nodiscard]] std::string report_on(const WorkflowFindings& findings);

}  // namespace hangar::commands
