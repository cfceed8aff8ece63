// What keeps a workflow from going on when its machine cannot be had, or cannot decide, in the
// words of its conditions. Pure: from the error, and from what is known of the workflow.
#pragma once

#include "base/result.h"
#include "workflows/ledger.h"
#include "workflows/verdict.h"
#include "workflows/workflow.h"

#include <string_view>

namespace hangar::workflows {

// The module cannot be had, or is none that the host can run.
[[nodiscard]] Problem module_problem(const Workflow& workflow, const Ledger& ledger,
                                     const Error& error);

// The machine was asked, and gave no answer or one that cannot be taken. `doing`: what it was
// asked; begins the message.
[[nodiscard]] Problem machine_problem(const Workflow& workflow, const Ledger& ledger,
                                      const Error& error, std::string_view doing);

// Whether the machine may be another one later without anybody telling the host: then it is tried
// again from time to time. A workflow that has begun keeps its machine, ConfigMaps are watched.
[[nodiscard]] bool may_be_mended_unseen(const Workflow& workflow, const Ledger& ledger);

}  // namespace hangar::workflows
