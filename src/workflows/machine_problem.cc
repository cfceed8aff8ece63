#include "workflows/machine_problem.h"

#include "budget/cache_charges.h"
#include "kube/client.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

namespace hangar::workflows {

namespace {

std::string migration_command(const Workflow& workflow) {
  return fmt::format("kubectl annotate statefulworkflow {} -n {} {}=<any new text>",
                     workflow.key.name, workflow.key.namespace_, kMigrateAnnotation);
}

// How people resume the workflow after they have repaired the machine.
std::string advice_for_machine(const Workflow& workflow, const Ledger& ledger) {
  if (ledger.has_begun()) {
    return fmt::format(
        "Fix the machine, and migrate this workflow to it: {}; the event waits in the inbox until "
        "then",
        migration_command(workflow));
  }
  if (workflow.config_map) {
    return fmt::format(
        "Fix the machine in the ConfigMap {}; the workflow starts as soon as that changes",
        *workflow.config_map);
  }
  return "Fix the machine; hangar fetches it again periodically and then starts the workflow";
}

// For a workflow that is already pinned to this module.
Problem pinned_problem(const Workflow& workflow, const Ledger& ledger, const Error& error,
                       bool is_source_closed) {
  if (is_source_closed) {
    return {.reason = "ModuleUnavailable",
            .message = fmt::format("cannot fetch the module sha256:{} that this workflow is pinned "
                                   "to: {}. hangar retries",
                                   ledger.sha256, error.message())};
  }
  return {.reason = "ModuleGone",
          .message = fmt::format(
              "the workflow is pinned to the module sha256:{}, of which there is no stored copy, "
              "and {}: restore it, or migrate to the present module: {}",
              ledger.sha256, error.message(), migration_command(workflow))};
}

}  // namespace

Problem module_problem(const Workflow& workflow, const Ledger& ledger, const Error& error) {
  if (budget::is_too_little_disk(error)) {
    return {.reason = error.reason(),
            .message = fmt::format("{}. hangar retries", error.message())};
  }
  const bool is_source_closed =
      error.kind() == ErrorKind::Unavailable || error.kind() == ErrorKind::Denied;
  if (!ledger.sha256.empty()) return pinned_problem(workflow, ledger, error, is_source_closed);
  // The API server's message: the ConfigMap itself, not a key in it, is missing.
  std::vector<std::string> awaited;
  for (const auto& name : {workflow.config_map, workflow.plugin_config_map})
    if (name) awaited.push_back(*name);
  if (!awaited.empty() && kube::reason_of(error) == "NotFound") {
    return {.reason = "WaitingForModule",
            .message =
                fmt::format("{}: create the ConfigMap {} in namespace {}; the workflow then starts",
                            error.message(), fmt::join(awaited, " and the ConfigMap "),
                            workflow.key.namespace_),
            .is_waiting = true};
  }
  if (is_source_closed) {
    return {.reason = "ModuleUnavailable",
            .message = fmt::format(
                "{}. hangar retries; the workflow starts when the module can be fetched",
                error.message())};
  }
  return {.reason = "ModuleInvalid",
          .message = fmt::format("{}. {}", error.message(), advice_for_machine(workflow, ledger))};
}

Problem machine_problem(const Workflow& workflow, const Ledger& ledger, const Error& error,
                        std::string_view doing) {
  if (error.kind() == ErrorKind::Unavailable) {
    return {.reason = "MachineUnavailable",
            .message = fmt::format("{}: no answer: {}. hangar retries", doing, error.message())};
  }
  std::string_view reason = "MachineFailed";
  std::string_view what = "it failed";
  if (error.kind() == ErrorKind::LimitExceeded) {
    reason = "LimitExceeded";
    what = "it exceeded a limit (an endless loop, or data that keep growing?)";
  } else if (error.kind() == ErrorKind::InvalidInput) {
    reason = "AnswerInvalid";
    what = "its answer is not valid";
  }
  return {.reason = std::string(reason),
          .message = fmt::format("{}: {}: {}. {}", doing, what, error.message(),
                                 advice_for_machine(workflow, ledger))};
}

Problem refused_module_problem(const Workflow& workflow, const Ledger& ledger, const Error& error) {
  return {
      .reason = error.reason(),
      .message = fmt::format("the workflow is pinned to the module sha256:{}, and {}. Migrate it "
                             "to the module that its spec names: {}; or have the policy changed",
                             ledger.sha256, error.message(), migration_command(workflow))};
}

bool may_be_mended_unseen(const Workflow& workflow, const Ledger& ledger) {
  return !ledger.has_begun() && !workflow.is_in_config_maps;
}

Error machine_retry(const Workflow& workflow, const Ledger& ledger, const Error& error) {
  const bool is_tried_again =
      error.kind() == ErrorKind::Unavailable || may_be_mended_unseen(workflow, ledger);
  return {is_tried_again ? ErrorKind::Unavailable : ErrorKind::InvalidInput, error.message()};
}

}  // namespace hangar::workflows
