#include "workflows/reading.h"

#include "base/result.h"

#include <fmt/format.h>

#include <utility>

namespace hangar::workflows {

Reading read_workflow(const json::Value& manifest) {
  Reading reading;
  if (Result<Workflow> workflow = parse_workflow(manifest)) {
    reading.workflow = *std::move(workflow);
  } else {
    reading.problem = {.reason = "SpecInvalid", .message = workflow.error().message()};
  }
  if (Result<Ledger> ledger = parse_ledger(json::find(manifest, {"status"}))) {
    reading.ledger = *std::move(ledger);
  } else if (!reading.problem) {
    reading.problem = {.reason = std::string(kStatusInvalid),
                       .message = fmt::format("{}: {}", ledger.error().message(),
                                              advice_for_status(kube::key_of(manifest)))};
  }
  return reading;
}

Rules rules_of(const Workflow& workflow) {
  return {.key = workflow.key,
          .uid = workflow.uid,
          .history_max = workflow.history_max,
          .timeout = workflow.timeout,
          .state_timeouts = workflow.state_timeouts};
}

std::string advice_for_status(const kube::ObjectKey& key) {
  return fmt::format(
      "restore the previous status, or restart the workflow: kubectl patch statefulworkflow {} "
      "-n {} --subresource=status --type=json -p '[{{\"op\":\"remove\",\"path\":\"/status\"}}]'",
      key.name, key.namespace_);
}

}  // namespace hangar::workflows
