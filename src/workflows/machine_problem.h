// Why a workflow cannot continue when its machine cannot be fetched, or cannot decide, in the words
// of its conditions. Pure: computed from the error, and from what is known about the workflow.
#pragma once

#include "base/result.h"
#include "workflows/ledger.h"
#include "workflows/verdict.h"
#include "workflows/workflow.h"

#include <string_view>

namespace hangar::workflows {

// The module cannot be fetched, or is not one that the host can run.
[[nodiscard]] Problem module_problem(const Workflow& workflow, const Ledger& ledger,
                                     const Error& error);

// The machine gave no answer or an invalid one. `doing`: the question, which begins the message.
[[nodiscard]] Problem machine_problem(const Workflow& workflow, const Ledger& ledger,
                                      const Error& error, std::string_view doing);

// The policies no longer allow the module that the workflow is pinned to.
[[nodiscard]] Problem refused_module_problem(const Workflow& workflow, const Ledger& ledger,
                                             const Error& error);

// Whether the machine may change later without notice to the host; if so, hangar retries from time
// to time. A workflow that has started keeps its machine, and ConfigMaps are watched.
[[nodiscard]] bool may_be_mended_unseen(const Workflow& workflow, const Ledger& ledger);

// The error to return: one that is retried, or InvalidInput, which is not.
[[nodiscard]] Error machine_retry(const Workflow& workflow, const Ledger& ledger,
                                  const Error& error);

}  // namespace hangar::workflows
