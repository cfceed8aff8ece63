// The readable content of a workflow's object.
#pragma once

#include "json/value.h"
#include "kube/object.h"
#include "workflows/decision.h"
#include "workflows/ledger.h"
#include "workflows/verdict.h"
#include "workflows/workflow.h"

#include <optional>
#include <string>

namespace hangar::workflows {

struct Reading {
  Workflow workflow;
  Ledger ledger;
  // Why the spec cannot be read or, if it can, why the status cannot.
  std::optional<Problem> problem;
};
[[nodiscard]] Reading read_workflow(const json::Value& manifest);

[[nodiscard]] Rules rules_of(const Workflow& workflow);

// How to repair a status that was edited into an invalid one.
[[nodiscard]] std::string advice_for_status(const kube::ObjectKey& key);

}  // namespace hangar::workflows
